"""Plain text to blocks: headings (underlined, numbered, capital), lists, drawn tables, paragraphs.

A heading is believed only when it stands alone and looks like nothing else, since a wrong one cuts a document
apart and a missed one only makes a section longer.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lxml import etree

from tidemark.adapters.partition.html.lines import LINE_END, is_labelled, runs_on
from tidemark.adapters.partition.html.tree import add_block

_UNDERLINE = re.compile(r"([=\-~^*#+])\1{2,}\s*$")
_LEVELS = "=-~^*#+"
_ATX = re.compile(r"(#{1,6})\s+(.+?)\s*#*$")
_COLUMNS = re.compile(r"\S {3,}\S")
_DRAWN = re.compile(r"[|+][-=]{3,}|[─-╿]|[-=_]{6,}|\|.*\|")
_CODE = re.compile(
    r"[{};]\s*$|^\s*(def|class|import|from|return|if|for|#include|\$|>>>)\b|\w\(.*\)\s*[{;:]?$"
)
_MARKED = "data-marked"
_STOPS = (".", ",", ";", ":", "!", "?")
_SENTENCE_ENDS = (".", "!", "?", "。", "！", "？", "।", "؟")
_OPEN_END = re.compile(
    r"\b(?:of|the|and|for|to|in|on|a|an|with|von|der|die|das|und|für|de|la|le|et|du|del|y)$"
)
_GREETING = re.compile(r"\D{2,24},")
"""A short line that runs on and ends all the same: "Kind regards," above a name."""
_PROSE_WIDTH = 45
_LONGEST_DRAWN = 2000
_DEEPEST_ITEM = 9


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading on one line, or on ``lines`` of them; ``level`` from 1, ``marked`` when it was drawn."""

    level: int
    text: str
    marked: bool
    lines: int = 1


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines between blank ones, or a heading found by its line."""

    lines: list[str]
    indent: int
    heading: Heading | None = None


def read_plain_text(text: str, *, titled: bool = True) -> etree._Element:
    """The blocks of a text as HTML elements under one root.

    titled: its first line may be its title; not so in a mail, which begins with a greeting.
    """
    pages = text.expandtabs(8).split("\f")
    lines = [line.rstrip() for page in _without_running_lines(pages) for line in page]
    lines = _with_plain_bullets(lines)
    base = _base_indent(_blocks(lines, {}))
    headings = marked_headings(lines)
    headings |= _numbered_headings(lines, base, headings)
    headings |= unwrapped_headings(lines, headings)
    blocks = _blocks(lines, headings)
    root = etree.Element("div")
    titled = titled and _is_title(blocks)
    if titled:
        head, rest = _title_lines(blocks[0].lines)
        add_block(root, "h1", " ".join(line.strip() for line in head))
        blocks = [*([_Block(rest, blocks[0].indent)] if rest else []), *blocks[1:]]
    for index, block in enumerate(blocks):
        following = blocks[index + 1] if index + 1 < len(blocks) else None
        _append(root, block, following, base)
    if len(root) and root[0].tag == "h1" and not (blocks and blocks[0].heading and not titled):
        # What heads the whole text is one level up from the headings in it.
        for heading in root.iterchildren("h1", "h2", "h3", "h4", "h5"):
            if heading is not root[0] and heading.get(_MARKED) is None:
                heading.tag = f"h{int(heading.tag[1]) + 1}"
    return root


def _is_title(blocks: list[_Block]) -> bool:
    """Whether a text begins with a few short lines that head it all."""
    if len(blocks) < 3 or len(blocks[0].lines) > 3 or blocks[0].heading:
        return False
    lines = [line.strip() for line in blocks[0].lines]
    if any(len(line) > 80 or line.endswith(_STOPS) or _mark_of(line) for line in lines):
        return False
    plain = not any(
        _UNDERLINE.fullmatch(line) or _ATX.match(line) or _NUMBERED.match(line) for line in lines
    )
    after = blocks[1]
    # Another short line after it belongs to a list of such lines, unless these are capitals.
    prose = len(after.lines) == 1 and _is_prose(after.lines[0], lines[0])
    headed = prose or len(after.lines) > 1 or after.heading is not None
    return plain and (lines[0].isupper() or headed)


def _is_prose(line: str, title: str) -> bool:
    """Whether a line is a paragraph that nobody wrapped, several times as long as the title above it."""
    text = line.strip()
    ended = text.endswith(_SENTENCE_ENDS) or len(text) > UNWRAPPED_WIDTH
    return len(text) > max(3 * len(title), 60) and ended


def _title_lines(lines: list[str]) -> tuple[list[str], list[str]]:
    """The lines of a title that was broken, and those under it that say something else."""
    end = 1
    while end < len(lines) and (
        runs_on(lines[end - 1].strip(), lines[end].strip())
        or _OPEN_END.search(lines[end - 1].strip())
        or (lines[end - 1].isupper() and lines[end].isupper())
    ):
        end += 1
    return lines[:end], lines[end:]


def _without_running_lines(pages: list[str]) -> list[list[str]]:
    """Lines of each page without the headers and footers that return on most pages."""
    split = [page.split("\n") for page in pages]
    if len(split) < 3:
        return split
    edges: Counter[str] = Counter()
    for page in split:
        edges.update({_shape(page[i]) for i in _edge(page)})
    running = {shape for shape, count in edges.items() if count >= max(3, len(split) // 2)}
    return [
        [line for i, line in enumerate(page) if _shape(line) not in running or i not in _edge(page)]
        for page in split
    ]


def _edge(page: list[str]) -> list[int]:
    """Indices of the first and last two lines of a page that hold something."""
    filled = [i for i, line in enumerate(page) if line.strip()]
    return [*filled[:2], *filled[-2:]]


def _shape(line: str) -> str:
    return re.sub(r"\d+", "#", " ".join(line.split()))


def _blocks(lines: list[str], headings: Mapping[int, Heading]) -> list[_Block]:
    blocks: list[_Block] = []
    current: list[str] = []
    taken = 0
    for index, line in enumerate([*lines, ""]):
        if index < taken:
            continue
        heading = headings.get(index)
        if line.strip() and heading is None:
            current.append(line)
            continue
        if current:
            blocks.append(_Block(current, min(len(x) - len(x.lstrip()) for x in current)))
            current = []
        if heading is not None:
            taken = index + heading.lines
            blocks.append(_Block([line], len(line) - len(line.lstrip()), heading))
    return blocks


def _base_indent(blocks: list[_Block]) -> int:
    """The indentation of running text."""
    counts: Counter[int] = Counter()
    for block in blocks:
        if len(block.lines) > 1:
            counts[block.indent] += len(block.lines)
    return counts.most_common(1)[0][0] if counts else 0


def _append(
    root: etree._Element,
    block: _Block,
    following: _Block | None,
    base: int,
) -> None:
    if block.heading is not None:
        heading_element = add_block(root, f"h{block.heading.level}", block.heading.text)
        if block.heading.marked:
            heading_element.set(_MARKED, "")
        return
    lines = block.lines
    if (
        len(lines) >= 2
        and _UNDERLINE.fullmatch(lines[1].strip())
        and not _UNDERLINE.fullmatch(lines[0].strip())
    ):
        if len(lines[1].strip()) >= len(lines[0].strip()) // 2:
            level = min(_LEVELS.index(lines[1].strip()[0]) + 1, 6)
            add_block(root, f"h{level}", lines[0].strip())
            lines = lines[2:]
    elif (
        len(lines) == 3
        and lines[0].strip() == lines[2].strip()
        and _UNDERLINE.fullmatch(lines[0].strip())
    ):
        add_block(root, "h1", lines[1].strip())
        return
    if not lines:
        return
    rest = _Block(lines, block.indent)
    heading = _heading(rest, following, base) if lines is block.lines else None
    if heading:
        add_block(root, f"h{heading[0]}", heading[1])
    else:
        _body(root, rest, base)


def _body(root: etree._Element, block: _Block, base: int) -> None:
    """A block that is no heading: its lists, and what stands before, between and after them."""
    ranges = list_ranges(block.lines)
    drawn = _is_preformatted(block, base)
    if drawn and not (ranges and ranges[0] == (0, len(block.lines))):
        text = "\n".join(line[block.indent :] for line in block.lines)
        add_block(root, "pre", f"\n{text}\n")
        return
    begin = 0
    for start, end in [*ranges, (len(block.lines), len(block.lines))]:
        if start > begin:
            _paragraphs(root, block.lines[begin:start])
        if end > start:
            _list(root, block.lines[start:end])
        begin = end


def _heading(block: _Block, following: _Block | None, base: int) -> tuple[int, str] | None:
    """Level and text of a block that is a heading."""
    text = block.lines[0].strip()
    if len(block.lines) > 1 or len(text) > 90 or block.indent > base or following is None:
        return None
    atx = _ATX.match(text)
    if atx:
        return len(atx[1]), atx[2]
    if text.endswith(_STOPS) or len(text.split()) > 12 or _NUMBERED.match(text):
        return None
    if text.isupper() and len(re.findall(r"[^\W\d_]", text)) >= 3 and not _is_capitals(following):
        return 1, text
    return None


def _is_capitals(block: _Block) -> bool:
    return len(block.lines) == 1 and block.lines[0].isupper()


def _is_preformatted(block: _Block, base: int) -> bool:
    """Columns, drawings and code keep their lines."""
    # The expressions here take the square of a line's length; nobody draws in lines this long.
    lines = [line for line in block.lines if len(line) <= _LONGEST_DRAWN]
    if not lines:
        return False
    columns = sum(1 for line in lines if _COLUMNS.search(line.strip()))
    drawn = sum(1 for line in lines if _DRAWN.search(line))
    code = sum(1 for line in lines if _CODE.search(line))
    share = len(block.lines) * 0.5
    if len(lines) >= 2 and (columns > share or drawn > share):
        return True
    return block.indent > base + 1 and code >= max(1, share)


def _list(root: etree._Element, lines: list[str]) -> None:
    """Items with their continuation lines; those of a deeper level are items of an inner list."""
    lists: list[etree._Element] = []
    for item in items_of(lines) or []:
        level = min(item.level, _DEEPEST_ITEM)
        del lists[level:]
        while len(lists) < level:
            lists.append(etree.SubElement(lists[-1] if lists else root, "ul"))
        add_block(lists[-1], "li", " ".join(item.lines))


def _paragraphs(root: etree._Element, lines: list[str]) -> None:
    """One paragraph of wrapped lines; one each where nobody wrapped them; one with its line ends where these
    say something ("Present: …", "Apologies: …", an address)."""
    lines = [line.strip() for line in lines]
    longest = max(map(len, lines))
    if longest > UNWRAPPED_WIDTH:
        for line in lines:
            add_block(root, "p", line)
        return
    pairs = list(pairwise(lines))
    labelled = sum(map(is_labelled, lines))
    broken = sum(runs_on(a, b) and not _GREETING.fullmatch(a) for a, b in pairs)
    short = longest < _PROSE_WIDTH and broken * 2 <= len(pairs)
    text = lines[0]
    for before, line in pairs:
        ended = short or (labelled >= 2 and is_labelled(lines[0]) and is_labelled(line))
        ended = ended or (before.endswith((":", "：")) and len(before) < 0.75 * longest)
        text += f"{LINE_END if ended else ' '}{line}"
    add_block(root, "p", text)


# Lines of a text that head what is under them: wiki headings, rulers with a word, short lines above long.

_WIKI = re.compile(r" ?(={1,6}|=(?: =){1,5}) ?(?![=\s])(.{1,200}?)(?<![=\s]) ?\1\s*$")
_WIKI_ITEM = re.compile(r"^(\*{1,4}|#{1,4})[ \t]*(?=[^\s*#])(?!\w+\*)")
# Only signs of equality open a heading alone: "--- a/file" and "*** x" begin other things.
_RULER = re.compile(
    r" ?(?:={3,10}|(?P<other>[~*_-])(?P=other){2,9}(?=.*(?P=other){3}\s*$)) (?=[^\W\d_])"
    r"(?P<text>[\w ,.'’&/()-]{1,80}?)(?: [=~*_-]{3,})?\s*$"
)
_MARKDOWN_RULER = re.compile(
    r" ?={3,10} (?=[^\W\d_])(?P<text>[\w ,.'’&/()-]{1,80}?)(?: ={3,})?\s*$"
)
_CAPTION = re.compile(
    r"(?:fig(?:ure|\.)?|table|box|scheme|plate|chart|abb(?:ildung|\.)|tab(?:elle|leau|la|\.)|figura)\s*\w{0,2}\d",
    re.IGNORECASE,
)
# No text is wrapped so wide: each of its lines is a paragraph.
UNWRAPPED_WIDTH = 160
_LONGEST = 90
_MOST_WORDS = 12
_DEEPEST = 6


def _wiki_heading(line: str) -> tuple[int, str] | None:
    """Level and text of "== History ==" or " = = History = = "."""
    if "=" not in line[:2]:
        return None
    match = _WIKI.match(line)
    return (match[1].count("="), match[2].strip()) if match else None


def _with_plain_bullets(lines: list[str]) -> list[str]:
    """In a text with wiki headings, its lists ("*item", "## item") with marks that any text has."""
    if not any(_wiki_heading(line) for line in lines):
        return lines
    return [_WIKI_ITEM.sub(lambda match: f"{'*' * len(match[1])} ", line) for line in lines]


def marked_headings(lines: Sequence[str], *, markdown: bool = False) -> dict[int, Heading]:
    """Wiki headings and rulers with a word ("==== Body"), by the index of their line.

    In Markdown other signs than "=" draw other things. A lone " = x = " may be an equation.
    """
    wiki: dict[int, Heading] = {}
    rulers: dict[int, tuple[int, str]] = {}
    ruler = _MARKDOWN_RULER if markdown else _RULER
    for index, line in enumerate(lines):
        heading = _wiki_heading(line)
        if heading:
            wiki[index] = Heading(*heading, marked=True)
        elif (drawn := ruler.match(line)) is not None and not drawn["text"].endswith(_STOPS):
            rulers[index] = (len(line.lstrip().split(" ")[0]), drawn["text"].strip())
    if len(wiki) == 1 and next(iter(wiki.values())).level == 1:
        wiki = {}
    lengths = sorted({length for length, _ in rulers.values()})
    drawn_headings = {
        index: Heading(min(lengths.index(length) + 1, _DEEPEST), text, marked=True)
        for index, (length, text) in rulers.items()
    }
    return wiki | drawn_headings


def unwrapped_headings(lines: Sequence[str], others: Mapping[int, Heading]) -> dict[int, Heading]:
    """Short lines right above a line too long to have been wrapped, in blocks of their own.

    Of two such lines together ("Results", "Growth in spring") the second is one level down. Captions and
    what ends with a stop head nothing. All are below the last of the ``others`` above them.
    """
    levels: dict[int, int] = {}
    for index in range(len(lines) - 1):
        begins = index == 0 or not lines[index - 1].strip() or index - 1 in others
        if not begins or index in others or not _may_head(lines[index]):
            continue
        if len(lines[index + 1]) > UNWRAPPED_WIDTH:
            levels[index] = 1
        elif (
            index + 2 < len(lines)
            and index + 1 not in others
            and _may_head(lines[index + 1])
            and len(lines[index + 2]) > UNWRAPPED_WIDTH
        ):
            levels[index], levels[index + 1] = 1, 2
    headings: dict[int, Heading] = {}
    level = 0
    for index in sorted({*levels, *others}):
        if index in others:
            level = others[index].level
        else:
            depth = min(level + levels[index], _DEEPEST)
            headings[index] = Heading(depth, lines[index].strip(), marked=level > 0)
    return headings


def _may_head(line: str) -> bool:
    text = line.strip()
    return (
        0 < len(text) <= _LONGEST
        and _may_be_title(text, spaced=True)
        and text[0].isalnum()
        and _CAPTION.match(text) is None
        and not any(sign in text for sign in ("|", "@", "://", ": "))
    )


def _may_be_title(text: str, *, spaced: bool) -> bool:
    first = next((char for char in text if char.isalnum()), "")
    return (
        spaced
        and (first.isupper() or not (first.islower() or first.isupper()))
        and not text.rstrip().endswith(_STOPS)
        and len(text.split()) <= _MOST_WORDS
        and sum(1 for char in text if char.isalpha()) * 2 >= len(text.replace(" ", ""))
    )


# Headings by their numbers: "1. Scope", "2.1 Charges", "ARTICLE IV", "Section 3.", "§ 5 Haftung".
#
# Numbers make headings only where they count up through the document; an ordinary numbered list stays a list.

_NUMBERED = re.compile(r"(\d{1,3}(?:\.\d{1,3}){0,4})(\.|\))?\s+(\S.*)$")
_ANNEX_NAMES = (
    "schedule annex annexe appendix exhibit attachment anlage anhang anexo allegato bijlage"
)
# From the outermost inwards.
_NAMES_BY_RANK = (
    f"part book title teil buch partie parte livre libro {_ANNEX_NAMES}",
    "chapter kapitel chapitre capítulo capitolo hoofdstuk",
    "article artikel artículo articolo artigo",
    "section abschnitt sección sezione seção clause",
)
_RANKS = {name: rank for rank, names in enumerate(_NAMES_BY_RANK) for name in names.split()}
_ANNEXES = frozenset(_ANNEX_NAMES.split())
# The longest first: "parte 1" is no "part" with the number "e".
_NAMED = re.compile(
    rf"(?P<name>{'|'.join(sorted(_RANKS, key=len, reverse=True))}|§+)\s*"
    r"(?P<number>(?:\d{1,3}[a-z]?(?:\.\d{1,3})*|[ivxlc]{1,7}|[A-Z])\b)(?P<rest>.*)$",
    re.IGNORECASE,
)
_PARAGRAPH_RANK = 4
_LEADER = re.compile(r"(?:\.\s?){3,}\s*\d*$|\s{3,}\d{1,4}$")
_SENTENCE_END = re.compile(r"[.!?;]\W*$")
_SENTENCE = re.compile(
    r"\b(?:shall|may|must|will|should|can|cannot|is|are|has|have|does|do|agrees?|undertakes?|"
    r"darf|dürfen|muss|müssen|soll|sollen|kann|können|wird|werden|ist|sind|hat|haben|"
    r"doit|doivent|peut|peuvent|est|sont|debe|deben|puede|pueden|es|son|deve|devono|può|possono|è|sono)\b",
)
"""A finite verb: a heading has none."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    index: int
    rank: int
    depth: int
    number: str
    text: str
    lines: int = 1


def _numbered_headings(
    lines: Sequence[str], base: int, taken: Iterable[int] = ()
) -> dict[int, Heading]:
    """Headings by their numbers ("1. Scope", "ARTICLE IV", "§ 5 Haftung"), by the index of their first line.

    ``base`` is the indentation of running text, and ``taken`` are lines that are headings already.
    """
    claimed = set(taken)
    filled = [index for index, line in enumerate(lines) if line.strip()]
    candidates: list[_Candidate] = []
    for place, index in enumerate(filled[:-1]):
        if index in claimed:
            continue
        candidate = _named(lines, filled, place) or (
            _numbered(lines, filled, place) if _indent(lines[index]) <= base else None
        )
        if candidate:
            candidates.append(candidate)
    return _levelled(_in_sequence(_without_clauses(candidates, lines)))


def _named(lines: Sequence[str], filled: Sequence[int], place: int) -> _Candidate | None:
    """A line such as "ARTICLE IV", "Section 3. Payment", "§ 5 Haftung", with a title on the next line."""
    index = filled[place]
    line = lines[index].strip()
    match = _NAMED.match(line)
    if match is None or len(line) > _LONGEST or not _stands_alone(lines, index):
        return None
    name, rest = match["name"].casefold(), match["rest"]
    title = rest.lstrip(" .:–—-\t)")
    if rest and not title and rest.strip() not in {".", ":", "-", "–", "—"}:
        return None
    if title and not _may_be_title(title, spaced=rest[:1] in {" ", "\t", ".", ":"}):
        return None
    rank = _PARAGRAPH_RANK if name.startswith("§") else _RANKS[name]
    depth = match["number"].count(".")
    number = "" if name in _ANNEXES else match["number"]
    text, used = line, 1
    if not title:
        after = filled[place + 1]
        below = _title_below(lines, after) if after - index <= 2 else []
        if below:
            text, used = " ".join([line, *below]), after - index + len(below)
    return _Candidate(index, rank, depth, number, text, used)


def _title_below(lines: Sequence[str], index: int) -> list[str]:
    """The lines of a title under "ARTICLE I": up to three of capitals, or one that looks like a title."""
    block = [line.strip() for line in _rest_of_block(lines, index)]
    if not block or _NAMED.match(block[0]) or _NUMBERED.match(block[0]) or _mark_of(block[0]):
        return []
    if len(block) <= 3 and all(line.isupper() for line in block):
        return block
    titled = _may_be_title(block[0], spaced=True) and len(block[0]) <= _LONGEST
    return block if len(block) == 1 and titled and not _SENTENCE.search(block[0]) else []


def _numbered(lines: Sequence[str], filled: Sequence[int], place: int) -> _Candidate | None:
    """A line such as "1. Scope" or "2.1 Length of stay" with something else under it."""
    index = filled[place]
    line = lines[index].strip()
    match = _NUMBERED.match(line)
    if match is None or len(line) > _LONGEST or _LEADER.search(line):
        return None
    depth = match[1].count(".")
    if not _may_be_title(match[3], spaced=True) or match[2] == ")":
        return None
    after = filled[place + 1]
    if depth == 0 and match[2] is None and after == index + 1:
        return None  # "30 Days" within a paragraph
    if not (_stands_alone(lines, index) or _ends_paragraph(lines, index)):
        return None
    before = lines[filled[place - 1]] if place else ""
    if _is_neighbour(before, match[1], -1) or _is_neighbour(lines[after], match[1], 1):
        return None  # one after the other they are a list
    if _is_in_contents(lines, index):
        return None
    if after == index + 1 and not _NUMBERED.match(lines[after].strip()):
        body = _rest_of_block(lines, after)
        first = lines[after].lstrip()[:1]
        # A wrapped sentence fills its line; a second line set deeper belongs to an item of a list.
        if first.islower() or len(line) >= 0.7 * max(len(x.strip()) for x in body):
            return None
        if depth == 0 and _indent(lines[after]) > _indent(lines[index]):
            return None
    return _Candidate(index, _PARAGRAPH_RANK + 1, depth, match[1], line)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _rest_of_block(lines: Sequence[str], index: int) -> list[str]:
    """Up to eight lines from ``index`` to the next blank one."""
    block: list[str] = []
    for line in lines[index : index + 8]:
        if not line.strip():
            break
        block.append(line)
    return block


def _is_in_contents(lines: Sequence[str], index: int) -> bool:
    """Whether three numbered lines stand together, as in a table of contents."""
    first = last = index
    while first > max(index - 2, 0) and _NUMBERED.match(lines[first - 1].strip()):
        first -= 1
    while last < min(index + 2, len(lines) - 1) and _NUMBERED.match(lines[last + 1].strip()):
        last += 1
    return last - first >= 2


def _is_neighbour(line: str, number: str, step: int) -> bool:
    """Whether a line has the number that stands ``step`` after ``number`` and is as short as a heading."""
    other = _NUMBERED.match(line.strip())
    if other is None or len(line.strip()) > _LONGEST or _LEADER.search(line):
        return False
    outer, _, last = number.rpartition(".")
    beside = f"{outer}." if outer else ""
    if other[1] != f"{beside}{int(last) + step}":
        return False
    return bool(outer) or other[2] is not None or _may_be_title(other[3], spaced=True)


def _stands_alone(lines: Sequence[str], index: int) -> bool:
    return index == 0 or not lines[index - 1].strip()


def _ends_paragraph(lines: Sequence[str], index: int) -> bool:
    """Whether the line above ends a paragraph, though no blank line follows it."""
    above = lines[index - 1].strip()
    return above.endswith((".", "!", "?", ";", ":")) or bool(
        _NUMBERED.match(above) and len(above) < 60
    )


def _without_clauses(candidates: Sequence[_Candidate], lines: Sequence[str]) -> list[_Candidate]:
    """Without the numbers that begin a sentence, and without those whose siblings do ("4.1", "4.2").

    Of two clauses of one parent one may be short enough for a heading; they are treated alike.
    """
    heads = {c.index for c in candidates}
    clauses = {
        match[1].rpartition(".")[0]
        for index, line in enumerate(lines)
        if index not in heads and (match := _NUMBERED.match(line.strip())) and "." in match[1]
        if _stands_alone(lines, index) and not _LEADER.search(line)
        if len(line.strip()) > _LONGEST or _rest_runs_on(lines, index)
    }
    return [
        c
        for c in candidates
        if c.rank <= _PARAGRAPH_RANK
        or not (
            (c.depth and c.number.rpartition(".")[0] in clauses and not _has_body(lines, c.index))
            or _is_open(lines, c.index)
        )
    ]


def _rest_runs_on(lines: Sequence[str], index: int) -> bool:
    """Whether a numbered line is, with the lines under it, a sentence."""
    block = _rest_of_block(lines, index)
    return bool(_SENTENCE_END.search(block[-1])) or len(block) > 2


def _has_body(lines: Sequence[str], index: int) -> bool:
    """Whether a numbered line stands alone above text without a number: it heads that, if anything does."""
    if index + 1 >= len(lines) or lines[index + 1].strip():
        return False
    after = next((line.strip() for line in lines[index + 1 :] if line.strip()), "")
    return bool(after) and not _NUMBERED.match(after) and _mark_of(after) is None


def _is_open(lines: Sequence[str], index: int) -> bool:
    """Whether a numbered line begins a sentence that its items complete: "4.2 The customer may not"."""
    line = lines[index].strip()
    below = next((text for text in map(str.strip, lines[index + 1 : index + 4]) if text), "")
    match = _NUMBERED.match(line)
    title = match[3] if match else line
    listed = _mark_of(below) is not None
    return bool(_SENTENCE.search(title)) and (listed or below[:1].islower())


def _in_sequence(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Without the numbers of a kind that do not count up: each follows the last, or begins again at 1."""
    tops = [c for c in candidates if c.rank > _PARAGRAPH_RANK and c.depth == 0]
    steady = sum(
        1
        for before, after in zip([None, *tops], tops, strict=False)
        if int(after.number) == 1 or (before and int(after.number) == int(before.number) + 1)
    )
    consistent = steady * 10 >= len(tops) * 7
    return [c for c in candidates if c.rank <= _PARAGRAPH_RANK or c.depth or consistent]


def _levelled(candidates: Sequence[_Candidate]) -> dict[int, Heading]:
    """Levels by rank and depth: the outermost kind that the document has is 1."""
    names = sorted({c.rank for c in candidates if c.rank <= _PARAGRAPH_RANK and c.number})
    depths = [c.depth for c in candidates if c.rank > _PARAGRAPH_RANK]
    least = min(depths, default=0)
    shallowest = {rank: min(c.depth for c in candidates if c.rank == rank) for rank in names}
    headings: dict[int, Heading] = {}
    for candidate in candidates:
        if candidate.rank > _PARAGRAPH_RANK:
            level = len(names) + 1 + candidate.depth - (least if names else 0)
        elif candidate.number:
            level = names.index(candidate.rank) + 1 + candidate.depth - shallowest[candidate.rank]
        else:
            level = 1
        headings[candidate.index] = Heading(
            min(level, _DEEPEST), candidate.text, marked=False, lines=candidate.lines
        )
    return headings


# Lists in plain text: where they begin in a block, and how deep each item is.
#
# An item begins its line with a mark: a bullet, a number, a letter, a small roman numeral. Marks that running
# text may begin a wrapped line with ("12.", "(b)", "-") make items only where they count up from the first,
# or where another one follows.

_BULLETS = "-*•‣◦·+–—▪■□●○◆◇►▶✓✗"
_CIRCLED = "①-⑳⑴-⒇❶-❿㊀-㊉㈠-㈩"
_MARK = re.compile(
    rf"""(?P<indent>\s*)(?:
    (?P<bullet>[{re.escape(_BULLETS)}]|\*{{2,4}})\s+(?=\S)
    |(?P<tight>[・●○■□◆◇▪•※‧∙])\s*(?=[^\s・●○■□◆◇▪•※‧∙])
    |(?P<circled>[{_CIRCLED}])\s*(?=\S)
    |(?P<wide>[（(]\d{{1,2}}[）)]|\d{{1,2}}、)\s*(?=[^\s\d])
    |(?P<number>\(?\d{{1,3}}[.)])\s+(?=\S)
    |(?P<letter>\(?(?:[a-zA-Z]|[ivxl]{{2,6}}|[IVXL]{{2,6}})[.)])\s+(?=\S)
    )""",
    re.VERBOSE,
)
_KEPT_SIGNS = frozenset("※")
"""Signs that say something themselves (a remark) and stay with their text."""
_ROMANS = ["", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"]
_FAR = 30
"""Lines within which the next item is looked for."""
_CLOSED = (".", "!", "?", ";", ":", "。", "！", "？", "；", "：")


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark that a line begins with.

    indent: columns before it. kind: which marks count on from it ("bullet *", "(a)", "(i)", "1.").
    values: what it may count, several where a letter is also a numeral; () for a bullet.
    shown: what of it stays in the text, "" for a bullet. rest: the line after it.
    """

    indent: int
    kind: str
    values: tuple[tuple[str, int], ...]
    shown: str
    rest: str


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list; ``level`` is its nesting from 1, ``lines`` its text."""

    level: int
    lines: tuple[str, ...]


def _mark_of(line: str) -> Mark | None:
    """The mark that a line begins with, None for a line of text."""
    match = _MARK.match(line)
    if match is None:
        return None
    indent, rest = len(match["indent"]), line[match.end() :].strip()
    bullet = match["bullet"]
    if bullet:
        depth = len(bullet) if bullet.startswith("**") else 1
        return Mark(indent + 2 * (depth - 1), f"bullet {bullet}", (), "", rest)
    sign = match["tight"] or match["circled"]
    if sign:
        shown = sign if match["circled"] or sign in _KEPT_SIGNS else ""
        return Mark(indent, f"sign {'①' if match['circled'] else sign}", (), shown, rest)
    mark = match["wide"] or match["number"] or match["letter"]
    bare = mark.strip("()（）.、")
    form = mark.replace(bare, "{}")
    return Mark(indent, form, tuple(_values(bare)), f"{mark} ", rest)


def _values(bare: str) -> list[tuple[str, int]]:
    """What a mark may count: ("1", 4) for "4"; ("a", 9) and ("i", 1) for "i"."""
    if bare.isdigit():
        return [("1", int(bare))]
    case = "A" if bare.isupper() else "a"
    values = [(case, ord(bare.lower()) - 96)] if len(bare) == 1 else []
    roman = _roman(bare.lower())
    if roman:
        values.append(("I" if bare.isupper() else "i", roman))
    return values


def _roman(text: str) -> int:
    tens = len(text) - len(text.lstrip("x"))
    rest = text[tens:]
    return tens * 10 + _ROMANS.index(rest) if rest in _ROMANS and tens < 4 else 0


@dataclass(slots=True)
class _Level:
    kind: str
    style: str
    value: int
    indent: int


def items_of(lines: Sequence[str]) -> list[Item] | None:
    """The items of lines that begin with a list, each with its continuation; None when they do not."""
    items: list[tuple[int, list[str]]] = []
    stack: list[_Level] = []
    for line in lines:
        mark = _mark_of(line)
        level = _enter(stack, mark) if mark is not None else 0
        if mark is not None and level:
            items.append((level, [f"{mark.shown}{mark.rest}"]))
        elif items:
            items[-1][1].append(line.strip())
        else:
            return None
    return [Item(level, tuple(text)) for level, text in items]


def _enter(stack: list[_Level], mark: Mark) -> int:
    """The level of a mark, with ``stack`` brought up to date; 0 when it is no mark here."""
    for depth in range(len(stack), 0, -1):
        top = stack[depth - 1]
        if top.kind != mark.kind or (not mark.values and abs(mark.indent - top.indent) > 1):
            continue
        value = next(
            (v for style, v in mark.values if style == top.style and v == top.value + 1), None
        )
        if value is not None or not mark.values:
            del stack[depth:]
            top.value = value or 0
            return depth
    first = next(((style, value) for style, value in reversed(mark.values) if value == 1), None)
    if mark.values and first is None:
        if stack and mark.kind not in {level.kind for level in stack}:
            return 0
        first = mark.values[0]  # a list may begin with any number, or skip one
        same = [i for i, level in enumerate(stack) if level.kind == mark.kind]
        if same:
            stack[same[-1]].value = first[1]
            del stack[same[-1] + 1 :]
            return same[-1] + 1
    while stack and mark.indent < stack[-1].indent - 1:
        stack.pop()
    if (
        stack
        and not mark.values
        and abs(mark.indent - stack[-1].indent) <= 1
        and not stack[-1].style
    ):
        stack.pop()  # another bullet at the same place
    style, value = first or ("", 0)
    stack.append(_Level(mark.kind, style, value, mark.indent))
    return len(stack)


def list_ranges(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Half-open ranges of the lines of a block that are lists."""
    ranges: list[tuple[int, int]] = []
    index = 0
    while index < len(lines):
        mark = _mark_of(lines[index])
        if mark is None or not _begins(lines, index, mark):
            index += 1
            continue
        end = _end(lines, index, mark)
        ranges.append((index, end))
        index = end
    return ranges


def _begins(lines: Sequence[str], index: int, mark: Mark) -> bool:
    """Whether a list begins at a line: at the head of the block, or where it cannot be wrapped text."""
    if index == 0:
        return True
    if not mark.values:
        above = lines[index - 1].rstrip()
        signs = mark.kind.startswith("sign") or mark.kind[-1] not in "-–—+·"
        return signs or above.endswith(_CLOSED) or _has_next(lines, index, mark)
    if all(value != 1 for _, value in mark.values):
        return False
    return _has_next(lines, index, mark)


def _has_next(lines: Sequence[str], index: int, mark: Mark) -> bool:
    """Whether a later line of the block counts on from a mark."""
    for line in lines[index + 1 : index + _FAR]:
        other = _mark_of(line)
        if other is None or other.kind != mark.kind:
            continue
        if not mark.values or any(
            (style, value + 1) in other.values for style, value in mark.values
        ):
            return True
    return False


def _end(lines: Sequence[str], start: int, first: Mark) -> int:
    """Where the list that begins at ``start`` ends: at a new sentence that is set like the text before it."""
    for index in range(start + 1, len(lines)):
        line, above = lines[index], lines[index - 1].rstrip()
        if _mark_of(line) is not None:
            continue
        indent = len(line) - len(line.lstrip())
        if (
            indent <= first.indent
            and above.endswith(_CLOSED[:3])
            and not line.lstrip()[:1].islower()
        ):
            return index
    return len(lines)
