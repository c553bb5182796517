"""Formulas on a page as text that can be read: MathML, what KaTeX and MathJax make of it, and TeX.

Presentation MathML is read aloud in one line ("p = 12 + 3h", "(a + b)/2", "x_i^2"). Where there is none the
TeX in its annotation stands for it. The drawings that renderers put beside it for the eye are dropped.
"""

import re
from collections.abc import Callable, Sequence

from lxml import etree

from tidemark.adapters.partition.html.tree import HEADINGS, KIND, drop, text_of

_DRAWINGS = frozenset({"katex-html", "MathJax_Preview", "MJXc-display", "mjx-chtml"})
_WRAPPERS = frozenset(
    {"katex", "katex-mathml", "katex-display", "katex-block", "math", "arithmatex", "MathJax",
     "MathJax_Display", "MJX_Assistive_MathML", "mwe-math-element", "mwe-math-mathml-inline",
     "mwe-math-mathml-display", "mwe-math-mathml-a11y"}
)  # fmt: skip
_DISPLAYED = frozenset(
    {"katex-display", "katex-block", "mwe-math-mathml-display", "MathJax_Display", "display"}
)
_TEX_CLASSES = frozenset({"math", "arithmatex"})
_DELIMITED = re.compile(r"\s*(?:\\\[(.*)\\\]|\\\((.*)\\\)|\$\$(.*)\$\$|\$(.*)\$)\s*", re.DOTALL)
_PHRASES = frozenset(
    {"a", "b", "i", "em", "strong", "span", "code", "tt", "sub", "sup", "small", "u", "font"}
)
_LEFT_OUT = frozenset({"annotation", "annotation-xml", "mphantom", "maligngroup", "malignmark"})
_INVISIBLE = re.compile("[\u2061-\u2064\u200b]")
_TIGHT = frozenset("()[]{}|‖⟨⟩⌈⌉⌊⌋!'′″./^_%∂∇√∠°¬")
_SIGN = re.compile(r"(^|[(\[{|]|[=<>≤≥≈≡≠,;→^/] ?)([-−+±∓]) (?=\S)")


def script_formulas(document: etree._Element) -> None:
    """Turn the scripts that hold TeX for MathJax into text, and drop what was drawn of them."""
    for script in list(document.iter("script")):
        kind = (script.get("type") or "").replace(" ", "").lower()
        if not kind.startswith("math/tex"):
            continue
        before = script.getprevious()
        while before is not None and _classes(before) & {"MathJax_Preview", *_WRAPPERS}:
            further = before.getprevious()
            drop(before)
            before = further
        tail, tex = script.tail, script.text
        script.clear()
        script.tag, script.text, script.tail = "span", tex, tail
        script.set("class", "math display" if "mode=display" in kind else "math inline")
    for drawing in [e for e in document.iter("span", "div") if _classes(e) & _DRAWINGS]:
        drop(drawing)


def spell_formulas(root: etree._Element) -> None:
    """Replace every formula under ``root`` by its text; one set apart becomes a block of the kind formula."""
    for math in list(root.iter("math")):
        if _is_within(math, root):
            _replace(math, formula_text(math), displayed=math.get("display") == "block")
    for holder in list(root.iter("div", "span", "pre", "tt", "code", "p")):
        if _classes(holder) & _TEX_CLASSES and _is_within(holder, root):
            if (
                holder is root
                or holder.get(KIND)
                or next(holder.iter("p", "math"), None) not in {None, holder}
            ):
                continue
            delimited = _DELIMITED.fullmatch("".join(map(str, holder.itertext())))
            tex = next(filter(None, delimited.groups()), "") if delimited else text_of(holder)
            _replace(holder, " ".join(tex.split()), displayed=holder.tag in {"div", "pre", "p"})


def formula_text(math: etree._Element) -> str:
    """A formula in MathML on one line, as it would be typed."""
    spoken = _tidy(_row(list(math)))
    if spoken:
        return spoken
    for annotation in math.iter("annotation"):
        if "tex" in (annotation.get("encoding") or "").lower() and annotation.text:
            return " ".join(annotation.text.split())
    return " ".join((math.get("alttext") or "").split()) or text_of(math)


def _replace(element: etree._Element, text: str, *, displayed: bool) -> None:
    while (parent := element.getparent()) is not None and _only_wraps(parent, element):
        displayed = displayed or bool(_classes(element) & _DISPLAYED)
        element = parent
    displayed = (
        displayed or bool(_classes(element) & _DISPLAYED) or element.get("display") == "true"
    )
    parent = element.getparent()
    while displayed and parent is not None and parent.tag in _PHRASES and _is_alone(element):
        element, parent = parent, parent.getparent()
    tail = element.tail
    in_phrase = parent is None or parent.tag in _PHRASES | HEADINGS or element.tag == "body"
    for child in list(element):
        element.remove(child)
    element.attrib.clear()
    element.text, element.tag = text, "span"
    if not displayed or in_phrase or parent is None:
        return
    if parent.tag == "p":
        if _is_alone(element) or (
            len(parent) == 1 and not re.search(r"\w", (parent.text or "") + (tail or ""))
        ):
            parent.set(KIND, "formula")
            return
        parent.tag = "div"
    element.tag = "p"
    element.set(KIND, "formula")


def _only_wraps(parent: etree._Element, element: etree._Element) -> bool:
    """Whether the parent is a renderer's wrapper around this formula."""
    named = bool(_classes(parent) & _WRAPPERS) or str(parent.tag).startswith("mjx-")
    return named and (_is_alone(element) or str(parent.tag).startswith("mjx-"))


def _is_alone(element: etree._Element) -> bool:
    parent = element.getparent()
    if parent is None or (element.tail or "").strip() or (parent.text or "").strip():
        return False
    return not any(
        child is not element and (text_of(child) or (child.tail or "").strip()) for child in parent
    )


def _is_within(element: etree._Element, root: etree._Element) -> bool:
    return element is root or any(owner is root for owner in element.iterancestors())


def _classes(element: etree._Element) -> set[str]:
    return set((element.get("class") or "").split())


def _tidy(text: str) -> str:
    text = " ".join(text.split())
    text = re.sub(r" (?=[),;\]}])|(?<=[(\[{]) ", "", text)
    return _SIGN.sub(r"\1\2", text)


def _row(parts: Sequence[etree._Element]) -> str:
    return "".join(_say(part) for part in parts)


def _say(part: etree._Element) -> str:
    tag = str(part.tag).rpartition(":")[2]
    if tag in _LEFT_OUT:
        return ""
    if tag == "mo":
        return _operator(_INVISIBLE.sub("", text_of(part)))
    if tag == "mi":
        name = text_of(part)
        return f" {name} " if len(name) > 1 and name.isalpha() else name
    if tag == "mspace":
        return " "
    if tag == "mtext":
        return f" {text_of(part)} "
    children = list(part)
    if not children:
        return text_of(part)
    shape = _SHAPES.get(tag)
    if shape is not None and len(children) >= shape[0]:
        return shape[1](children)
    if tag == "mfenced":
        inside = ", ".join(_row([child]).strip() for child in children)
        return f"{part.get('open') or '('}{inside}{part.get('close') or ')'}"
    return _row(children[:1] if tag == "semantics" else children)


def _operator(sign: str) -> str:
    if not sign or sign in _TIGHT:
        return sign
    return f"{sign} " if sign in {",", ";", ":"} else f" {sign} "


def _group(part: etree._Element) -> str:
    """A part as one operand: in brackets unless it is one sign, one word or one number."""
    text = _tidy(_row([part]))
    one = len(part) == 0 or re.fullmatch(r"[\d.,]*|\S|\([^()]*\)|[-−+]\S", text)
    return text if one else f"({text.replace(' = ', '=')})"


def _scripts(
    base: etree._Element, below: etree._Element | None, above: etree._Element | None
) -> str:
    text = _row([base]).strip()
    if len(_tidy(text)) > 1 and not re.fullmatch(r"\w+|\(.*\)", _tidy(text)):
        text = f"({_tidy(text)})"
    text += f"_{_group(below)}" if below is not None else ""
    text += f"^{_group(above)}" if above is not None else ""
    return f" {text} " if text_of(base) in {"∑", "∏", "∫", "lim", "max", "min"} else text


_SHAPES: dict[str, tuple[int, Callable[[Sequence[etree._Element]], str]]] = {
    "mfrac": (2, lambda c: f"{_group(c[0])}/{_group(c[1])}"),
    "msup": (2, lambda c: _scripts(c[0], None, c[1])),
    "msub": (2, lambda c: _scripts(c[0], c[1], None)),
    "msubsup": (3, lambda c: _scripts(c[0], c[1], c[2])),
    "munder": (2, lambda c: _scripts(c[0], c[1], None)),
    "mover": (2, lambda c: _scripts(c[0], None, c[1])),
    "munderover": (3, lambda c: _scripts(c[0], c[1], c[2])),
    "msqrt": (1, lambda c: f"√({_tidy(_row(c))})"),
    "mroot": (2, lambda c: f"√[{_tidy(_row([c[1]]))}]({_tidy(_row([c[0]]))})"),
    "mtable": (1, lambda c: "; ".join(_tidy(_row([row])) for row in c)),
    "mtr": (1, lambda c: ", ".join(_tidy(_row([cell])) for cell in c)),
}
"""How the elements with parts are said, and how many parts they need for it."""
