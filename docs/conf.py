"""How the guide is built: `sphinx-build -W -b html docs build/docs`."""

import re

import edbatch

project = "EdBatch"
author = "the authors of EdBatch"
release = version = edbatch.__version__
html_title = f"EdBatch {release}"
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["guide.css"]
html_show_copyright = html_show_sphinx = False

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4  # `page.md#a-heading` leads there
suppress_warnings = ["myst.header"]  # tables of measurements begin at a deeper level

default_role = "py:obj"  # names in backticks: those that are known are links
smartquotes_action = "D"  # of dashes only: "depth" is code
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the signature has them
autodoc_preserve_defaults = True
napoleon_use_rtype = False
napoleon_use_ivar = True  # named tuples document their fields once
maximum_signature_line_length = 90


def escaped(line: str) -> str:
    """A line of a docstring in which `|x|`, `*` and `x_` mean nothing special."""
    if re.match(r"\s*\*{1,2}\w+(, \*{1,2}\w+)*:", line):  # `*xs: ...` under "Args:"
        return line
    parts = re.split(r"(`[^`]+`)", line)
    for at, part in enumerate(parts):
        if at % 2:
            parts[at] = part + ("\\ " if parts[at + 1][:1].isalnum() else "")
        else:
            parts[at] = re.sub(r"[*|]|(?<=\w)_(?!\w)", r"\\\g<0>", part)
    return "".join(parts)


def escape_docstring(app, what, name, of, options, lines):
    """All lines that are no examples."""
    example = False
    for at, line in enumerate(lines):
        example = line.strip().startswith(">>>") or (example and bool(line.strip()))
        lines[at] = line if example else escaped(line)


def setup(app):
    """Called by Sphinx; before Napoleon reads the sections."""
    app.connect("autodoc-process-docstring", escape_docstring, priority=400)
