"""Settings of the documentation; `make docs` builds it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from rlfd_gym import __version__

project = "rlfd_gym"
author = "The rlfd_gym developers"
copyright = f"2026, {author}"
release = version = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "myst_nb",
    "sphinx_copybutton",
    "rlfd_docs",
]
exclude_patterns = ["_ext", "_templates"]
nitpicky = True
nitpick_ignore_regex = [
    # What other packages document is on other sites, which a build without network cannot ask.
    (r"py:.*", r"(?!rlfd_gym\.).*"),
    # Aliases of types, and what a package keeps to itself.
    (r"py:.*", r"rlfd_gym\.(.*\.)?(_.*|SomeBelief)"),
]

html_theme = "furo"
templates_path = ["_templates"]
html_title = f"rlfd_gym {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # it would be fetched, which browsers refuse for files
html_math_renderer = "mathml"
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "friendly", "native"

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
smartquotes_action = "qe"  # not dashes: --alpha is an option
suppress_warnings = ["myst.header"]  # a page that is included, or a docstring, may begin at any level

nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).resolve().parent.parent / "build" / "notebooks")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_output_stderr = "remove"

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_type_aliases = {name: name for name in ("ArrayLike", "FloatArray", "IntArray", "BoolArray", "NDArray")}
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
maximum_signature_line_length = 80
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
