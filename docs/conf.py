"""Sphinx settings: `make docs` builds this folder into docs/_build/html, without the network."""

import sfihilo

project = "SFIHILO"
author = "SFIHILO founders"
release = version = sfihilo.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
default_role = "code"  # docstrings write code in single backquotes

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
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
