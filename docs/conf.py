"""Sphinx settings: `make docs` builds this folder into docs/_build/html, without the network."""

import re
from typing import Any

import sfihilo

project = "SFIHILO"
author = "SFIHILO founders"
project_copyright = f"{author}, MIT licence"
release = version = sfihilo.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
default_role = "code"  # docstrings write code in single backquotes

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
ALIASES = ("BoolArray", "FloatArray", "IntArray", "npt.ArrayLike")
autodoc_type_aliases = {name: name.removeprefix("npt.") for name in ALIASES}
python_maximum_signature_line_length = 88
add_module_names = False
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False  # a colon in a "Returns" sentence does not end a type

myst_heading_anchors = 3  # links such as speed.md#the-whole-study

html_theme = "furo"
html_title = f"SFIHILO {release}"
html_show_sphinx = False
html_copy_source = False


def plain_aliases(
    _app: Any, _what: str, _name: str, _object: Any, _options: Any, *texts: Any
) -> Any:
    """Signature and return type with the names of our aliases, which Sphinx wraps inside unions."""
    return tuple(text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in texts)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", plain_aliases)
