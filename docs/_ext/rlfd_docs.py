"""What this site adds to Sphinx: docstrings in Markdown, mathematics without a script, links by name.

- `autodoc` hands docstrings over as Markdown, see `docstring_markdown`.
- `{module-doc}` shows a module's docstring, `{docstring}` that of a public name, `{example}` its
  example alone, and `{public-names}` a table of the public names of a package.
- Formulas become MathML, which browsers draw themselves, so that a page needs no network.
- A name in code style that is documented becomes a link to its documentation.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

from docstring_markdown import examples_of, markdown_of
from docutils import nodes
from docutils.utils import new_document
from docutils.utils.math.latex2mathml import tex2mathml
from myst_parser.parsers.sphinx_ import MystParser
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

LINKED = re.compile(r"^(?:rlfd_gym\.)?[A-Za-z_][\w.]*$")


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
        return parse_markdown(self, markdown_of(find(self.arguments[0]).__doc__ or ""))


class Example(SphinxDirective):
    """The example in the docstring of a public name, which the tests run."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Show it as a block of code."""
        found = find(self.arguments[0])
        examples = examples_of(found.__doc__ or "")
        if not examples:
            raise self.error(f"{self.arguments[0]} has no example in its docstring")
        return [nodes.literal_block(text, text, language="pycon") for text in map(self._whole, examples)]

    def _whole(self, example: str) -> str:
        """Return an example with the imports that its module has anyway, and a reader has not."""
        package, _, name = self.arguments[0].rpartition(".")
        lines = [f">>> from {package} import {name}"]
        if re.search(r"\bnp\.", example):
            lines.insert(0, ">>> import numpy as np")
        missing = [line for line in lines if not re.search(rf"import .*\b{line.split()[-1]}\b", example)]
        return "\n".join([*missing, example])


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
        return f"`{thing}`".replace("|", "or")
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split()).replace("|", "\\|")


def find(name: str) -> Any:
    """Return the thing of a dotted name; a function goes before the module that it is named after."""
    first, *rest = name.split(".")
    thing, path = importlib.import_module(first), first
    for part in rest:
        path = f"{path}.{part}"
        thing = getattr(thing, part) if hasattr(thing, part) else importlib.import_module(path)
    return thing


def as_markdown(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Wrap a docstring into the directive that parses it."""
    text = "\n".join(lines)
    if text.strip():
        lines[:] = [".. markdown::", "", *(f"   {line}" for line in markdown_of(text).splitlines()), ""]
    if what == "module" and hasattr(obj, "__all__"):
        lines += [f".. public-names:: {name}", ""]


def inline_math(writer: Any, node: nodes.math) -> None:
    """Write a formula in a line."""
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def block_math(writer: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own."""
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
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
        found = known.get(name, set())
        if len(found) != 1 or plain or inside_title(literal):
            continue
        ((target, anchor, full),) = found
        uri = app.builder.get_relative_uri(docname, target)
        reference = nodes.reference("", "", internal=True, refuri=f"{uri}#{anchor}", reftitle=full)
        literal.replace_self(reference)
        reference.append(literal)


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
    app.connect("doctree-resolved", link_names, priority=900)
    app.connect("doctree-resolved", place_names)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
