"""Formulas of the site are MathML."""

import markdown
import pytest

from jaxdyn.maintain.site import on_page_content

PAGE = r"""Inline $a_i < b$ and `$code$`.

$$
\sum_i a_i \quad (1)
$$
"""


def test_formulas_as_markdown_marks_them_become_mathml():
    html = markdown.markdown(PAGE, extensions=["pymdownx.arithmatex"], extension_configs={"pymdownx.arithmatex": {"generic": True}})
    assert html.count("arithmatex") == 2
    page = on_page_content(html, page=None, config=None, files=None)
    assert page.count("<math") == 2 and page.count('display="block"') == 1 and "arithmatex" not in page
    assert "<code>$code$</code>" in page and "&lt;" in page


def test_a_page_without_formulas_is_left_alone():
    assert on_page_content("<p>costs $3 or \\(x\\)</p>") == "<p>costs $3 or \\(x\\)</p>"


def test_what_cannot_be_typeset_stops_the_build():
    with pytest.raises(ValueError, match="cannot typeset"):
        on_page_content(r'<span class="arithmatex">\(\nosuchmacro{\)</span>')
