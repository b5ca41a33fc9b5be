"""Sphinx: `sphinx-build -W docs docs/_build/html` builds these pages and runs every snippet in them."""

import os
from pathlib import Path

from docutils import nodes

import daskclust

# kernels of the pages find figures.py, what is in examples/, the scripts of the page on scaling, and tests/bench
_folders = (".", "examples", "explanation/scaling", "../tests")
_paths = [*(str(Path(__file__).parent / folder) for folder in _folders), os.environ.get("PYTHONPATH", "")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _paths))

project = "daskclust"
author = "daskclust developers"
project_copyright = "2026, daskclust developers"
release = daskclust.__version__
version = ".".join(release.split(".")[:2])

extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax"]
exclude_patterns = ["_build", "examples", "**.ipynb_checkpoints"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["pages.css"]
default_role = "literal"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_show_tb = True
if os.environ.get("DASKCLUST_NOTEBOOKS") == "as they are":  # where they were run already
    nb_execution_excludepatterns = ["notebooks/*"]
nb_execution_timeout = 180
nb_merge_streams = True
nb_render_markdown_format = "myst"  # with tables

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # docstrings say types in words, with shapes
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False

suppress_warnings = ["mystnb.unknown_mime_type"]  # what a notebook shows beside its HTML

html_theme = "pydata_sphinx_theme"
html_title = f"daskclust {release}"
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "show_prev_next": False,
}
html_sidebars = {"index": [], "benchmarks": []}


def _add_reading_time(app, doctree):
    """Put how long a page's text takes, without code and tables, below its title; not in the reference."""
    name = app.env.docname
    title = next(doctree.findall(nodes.title), None)
    if title is None or name.startswith("api/"):
        return
    text = [part for part in doctree.findall(nodes.paragraph) if not isinstance(part.parent, nodes.entry)]
    words = sum(len(part.astext().split()) for part in text)
    line = nodes.paragraph("", f"{max(1, round(words / 200))} min read", classes=["reading-time"])
    title.parent.insert(title.parent.index(title) + 1, line)


def setup(app):
    """Connect what Sphinx calls for each page."""
    app.connect("doctree-read", _add_reading_time)
