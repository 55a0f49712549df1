"""What this site adds to Sphinx: docstrings in Markdown, mathematics without a script, links by name.

- `autodoc` hands docstrings over as Markdown, see `docstring_markdown`.
- `{module-doc}` shows a module's docstring, `{docstring}` that of a public name, `{example}` its
  example alone, and `{public-names}` a table of the public names of a package.
- Formulas become MathML, which browsers draw themselves, so that a page needs no network. Letters
  with a hat are written as one character, because few fonts place the hat, and norms and products
  keep the height of a letter.
- A name in code style that is documented becomes a link to its documentation, and may be broken
  where its words end.
- Cells of tables know how much they hold, and pictures whether they are wide, for site.css.
- Signatures show types by their names, and defaults that have none as "..."; what a package keeps
  to itself, and what Python wrote about a field, is left out.
"""

from __future__ import annotations

import importlib
import inspect
import re
import unicodedata
from pathlib import Path
from typing import Any

from docstring_markdown import examples_of, markdown_of
from docutils import nodes
from docutils.utils import new_document
from docutils.utils.math.latex2mathml import tex2mathml
from imagesize import get as size_of
from myst_parser.parsers.sphinx_ import MystParser
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from whole_examples import fenced, find, with_imports

LINKED = re.compile(r"^(?:rlfd_gym\.)?[A-Za-z_][\w.]*$")
BREAKS = re.compile(r"(?<=[._/:=(])(?=\w)")
LONG = 16  # characters of code that may be broken
SHORT, SENTENCE = 14, 60  # characters in a cell of a table
NUMBERS = re.compile(r"^[-+]?[\d.,]+(?:e-?\d+)?%?(?: ?(?:±|/|×|to) ?[-+]?[\d.,]+%?| \([^()]{1,14}\))*$")
FENCE = re.compile(r"<mo([^>]*)>([‖⟨⟩])</mo>")
HAT = re.compile(r'<mover accent="true">\s*<mi>(\w)</mi>\s*<mo stretchy="false">ˆ</mo>\s*</mover>')
WIDE = 1.9  # times as wide as high
UNNAMED = (
    (re.compile(r"TypeAliasForwardRef\('(\w+)'\)"), r"\1"),
    (re.compile(r"(?:~?[\w.]+\.)?_Buffer \| .*?\[complex \| bytes \| str\]"), "ArrayLike"),
    (re.compile(r"<[^<>]*>"), "..."),
    (re.compile(r"\b_\w+\.(\w+)"), r"\1"),
)


def parse_markdown(directive: SphinxDirective, text: str) -> list[nodes.Node]:
    """Return the nodes of a piece of Markdown."""
    outer = directive.state.document
    inner = new_document(outer.get("source", "docstring"), outer.settings)
    inner.reporter = outer.reporter
    MystParser().parse(text, inner)
    return list(inner.children)


class Markdown(SphinxDirective):
    """A piece of Markdown within reStructuredText, which `autodoc` writes."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Parse the content."""
        return parse_markdown(self, "\n".join(self.content))


class ModuleDoc(SphinxDirective):
    """The docstring of a module: its mathematics, said once, in the source."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parse the docstring."""
        module = importlib.import_module(self.arguments[0])
        self.env.note_dependency(str(inspect.getsourcefile(module)))
        return parse_markdown(self, markdown_of(module.__doc__ or ""))


class Docstring(SphinxDirective):
    """The docstring of a public name, on a page of its own."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parse it."""
        text = markdown_of(find(self.arguments[0]).__doc__ or "")
        return parse_markdown(self, with_imports(text, self.arguments[0]))


class Example(SphinxDirective):
    """The example in the docstring of a public name, which the tests run."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Show it as blocks of code, with the words between them."""
        found = find(self.arguments[0])
        examples = examples_of(found.__doc__ or "")
        if not examples:
            raise self.error(f"{self.arguments[0]} has no example in its docstring")
        text = "\n".join(map(fenced, examples))
        return parse_markdown(self, with_imports(text, self.arguments[0]))


class PublicNames(SphinxDirective):
    """A table of the public names of a package, and what each is in a line."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Write it as Markdown."""
        package = importlib.import_module(self.arguments[0])
        lines = ["| name | what it is |", "|---|---|"]
        for name in sorted(package.__all__, key=str.lower):
            lines.append(f"| `{self.arguments[0]}.{name}` | {in_a_line(getattr(package, name))} |")
        return parse_markdown(self, "\n".join(lines) + "\n")


def in_a_line(thing: Any) -> str:
    """Return the first sentence of a docstring, or what a constant holds."""
    if isinstance(thing, tuple | dict):
        return ", ".join(f"`{one}`" for one in thing)
    if not callable(thing) and not inspect.ismodule(thing):  # an alias of types
        return "`" + re.sub(r"[\w.]+\.(\w+)", r"\1", str(thing)).replace("|", "or") + "`"
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split()).replace("|", "\\|")


def as_markdown(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Wrap a docstring into the directive that parses it."""
    text = markdown_of("\n".join(lines))
    if what in ("function", "class", "exception"):
        text = with_imports(text, name)
    if text.strip():
        lines[:] = [".. markdown::", "", *(f"   {line}" for line in text.splitlines()), ""]
    if what == "module" and hasattr(obj, "__all__"):
        lines += [f".. public-names:: {name}", ""]


def plain_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Return a signature in which types have their names, and which Sphinx can read."""
    for pattern, name_of in UNNAMED:
        signature = None if signature is None else pattern.sub(name_of, signature)
        returned = None if returned is None else pattern.sub(name_of, returned)
    if what == "class" and signature == "(*args, **kwargs)":  # nothing is known of a protocol's
        signature = ""
    return signature, returned


def skip_what_python_wrote(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Skip fields of tuples, which their class describes, and functions of Python that are defaults."""
    is_field = (getattr(obj, "__doc__", None) or "").startswith("Alias for field number")
    return True if is_field or inspect.isbuiltin(obj) else None


def formula(tex: str, as_block: bool) -> str:
    """Return a formula as MathML, with each letter and its hat as one character where there is one.

    A norm with an exponent would be higher on the left, where it stands alone, than on the right.
    """

    def composed(match: re.Match[str]) -> str:
        letter = unicodedata.normalize("NFC", match.group(1) + "\N{COMBINING CIRCUMFLEX ACCENT}")
        return f'<mi class="hat">{letter}</mi>' if len(letter) == 1 else match.group()

    text = HAT.sub(composed, tex2mathml(tex, as_block=as_block))
    return FENCE.sub(r'<mo\1 stretchy="false">\2</mo>', text)


def inline_math(writer: Any, node: nodes.math) -> None:
    """Write a formula in a line."""
    writer.body.append(formula(node.astext(), as_block=False))
    raise nodes.SkipNode


def block_math(writer: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own."""
    writer.body.append(f'<div class="math">{formula(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def link_names(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link names in code style to what documents them, where only one thing has the name."""
    domain = app.env.domains["py"]
    known: dict[str, set[tuple[str, str, str]]] = {}
    for full, entry in domain.objects.items():  # type: ignore[attr-defined]
        if entry.aliased or entry.objtype == "module":
            continue
        parts = full.split(".")
        for start in range(len(parts)):
            known.setdefault(".".join(parts[start:]), set()).add((entry.docname, entry.node_id, full))
    for name in known:
        full = {one for one in known[name] if one[2] == name}
        known[name] = full or known[name]
    for public in importlib.import_module("rlfd_gym").__all__:
        if len(known.get(public, ())) >= 1:
            known.setdefault(f"rlfd_gym.{public}", known[public])
    for literal in list(doctree.findall(nodes.literal)):
        text = literal.astext()
        name = text.removesuffix("()")
        if not LINKED.match(name) or isinstance(literal.parent, nodes.reference):
            continue
        plain = "." not in name and "_" not in name and name.islower()
        found = known.get(name, set()) or known.get(exported(name), set())
        if len(found) != 1 or plain or inside_title(literal):
            continue
        ((target, anchor, full),) = found
        uri = app.builder.get_relative_uri(docname, target)
        reference = nodes.reference("", "", internal=True, refuri=f"{uri}#{anchor}", reftitle=full)
        literal.replace_self(reference)
        reference.append(literal)


def exported(name: str) -> str:
    """Return the last part of a name if a package has it among its public ones, from wherever."""
    package, _, last = name.rpartition(".")
    if not package.startswith("rlfd_gym"):
        return ""
    try:
        return last if last in getattr(importlib.import_module(package), "__all__", ()) else ""
    except ImportError:
        return ""


def break_names(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Let long names in code style be broken where a word ends."""
    for literal in list(doctree.findall(nodes.literal)):
        text = literal.astext()
        if len(text) < LONG or len(literal.children) != 1 or inside_title(literal):
            continue
        first, *others = BREAKS.split(text)
        pieces: list[nodes.Node] = [nodes.Text(first)]
        for piece in others:
            pieces += [nodes.raw("", "<wbr>", format="html"), nodes.Text(piece)]
        literal.children = []
        literal.extend(pieces)


def measure(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Say of each cell of a table how much it holds, and of pictures whether they are wide."""
    for cell in doctree.findall(nodes.entry):
        text = cell.astext()
        if len(text) <= SHORT or NUMBERS.match(text):
            cell["classes"].append("short")
        else:
            cell["classes"].append("phrase" if len(text) <= SENTENCE else "sentence")
    for image in doctree.findall(nodes.image):
        path = Path(app.srcdir, image["uri"])
        width, height = size_of(path) if path.is_file() else (0, 0)
        if width > WIDE * height:
            image["classes"].append("wide")


def dash_fields(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Set a dash between an argument and what is said of it, which Sphinx leaves to its quotes.

    Names of which the same is said are set apart by a blank, which Sphinx does not allow before.
    """
    for names in list(doctree.findall(addnodes.literal_strong)):
        text = names.astext()
        if "," in text:
            names.children = []
            names.append(nodes.Text(text.replace(",", ", ")))
    for text in list(doctree.findall(lambda node: isinstance(node, nodes.Text) and node.astext() == " -- ")):
        text.parent.replace(text, nodes.Text(" \N{EN DASH} "))


def plain_entries(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Leave arguments that a package keeps to itself out, and give types of properties their names."""
    for parameter in list(doctree.findall(addnodes.desc_parameter)):
        if parameter.astext().startswith("_"):
            parameter.parent.remove(parameter)
    for annotation in list(doctree.findall(addnodes.desc_annotation)):
        pattern, name_of = UNNAMED[0]
        if pattern.search(annotation.astext()):
            text = pattern.sub(name_of, annotation.astext())
            annotation.children = []
            annotation.append(nodes.Text(text))


def place_names(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Give each entry the places that the pages of source link back to.

    `viewcode` takes all names of a module for names of the package that showed the first of them.
    """
    modules = getattr(app.env, "_viewcode_modules", {})
    packages = {(name, entry[3]) for entry in modules.values() if entry for name in entry[2]}
    for signature in doctree.findall(addnodes.desc_signature):
        places = {f"{package}.{name}" for name, package in packages if name == signature.get("fullname")}
        signature["ids"] += sorted(places - set(signature["ids"]))


def inside_title(node: nodes.Node) -> bool:
    """Tell whether a node stands in a heading or in a signature."""
    while node is not None:
        if isinstance(node, nodes.title | nodes.rubric) or node.tagname.startswith("desc_signature"):
            return True
        node = node.parent
    return False


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all of it."""
    for name, directive in (
        ("markdown", Markdown),
        ("module-doc", ModuleDoc),
        ("docstring", Docstring),
        ("example", Example),
        ("public-names", PublicNames),
    ):
        app.add_directive(name, directive)
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    app.connect("autodoc-process-docstring", as_markdown)
    app.connect("autodoc-process-signature", plain_signature)
    app.connect("autodoc-skip-member", skip_what_python_wrote)
    app.connect("doctree-resolved", link_names, priority=900)
    app.connect("doctree-resolved", break_names, priority=901)
    app.connect("doctree-resolved", measure)
    app.connect("doctree-resolved", dash_fields)
    app.connect("doctree-resolved", plain_entries)
    app.connect("doctree-resolved", place_names)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
