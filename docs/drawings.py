"""The guide's two drawings, as SVG: ``python docs/drawings.py`` writes them anew."""

from __future__ import annotations

from pathlib import Path

INK, SOFT, WARM, COOL, BAD = "#1d2326", "#5b666b", "#d9a441", "#14666a", "#b3261e"
Point = tuple[float, float]

PEOPLE: dict[str, Point] = {
    "a": (60, 40),
    "b": (130, 30),
    "c": (170, 90),
    "d": (110, 120),
    "e": (40, 105),
}
LINKS = ("ab", "bc", "cd", "de", "ae", "bd")


def _network(shift: float, *, gone_link: str = "", gone_person: str = "") -> str:
    drawn = []
    for link in LINKS:
        (x, y), (u, v) = (PEOPLE[name] for name in link)
        gone = link == gone_link or gone_person in tuple(link)
        style = f'stroke="{BAD}" stroke-dasharray="4 4"' if gone else f'stroke="{SOFT}"'
        drawn.append(
            f'<line x1="{x + shift}" y1="{y}" x2="{u + shift}" y2="{v}" {style} stroke-width="2"/>'
        )
    for name, (x, y) in PEOPLE.items():
        gone = name == gone_person
        style = f'fill="none" stroke="{BAD}" stroke-dasharray="4 4"' if gone else f'fill="{COOL}"'
        drawn.append(f'<circle cx="{x + shift}" cy="{y}" r="10" {style} stroke-width="2"/>')
    return "".join(drawn)


def _text(x: float, y: float, words: str, *, colour: str = INK, size: int = 14) -> str:
    font = 'font-family="system-ui, sans-serif"'
    return (
        f'<text x="{x}" y="{y}" text-anchor="middle" {font} font-size="{size}" fill="{colour}">'
        f"{words}</text>"
    )


def _page(width: int, height: int, inner: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">'
        f'<rect width="{width}" height="{height}" rx="10" fill="#fbfaf6"/>{inner}</svg>\n'
    )


def draw_units() -> str:
    """Draw a network, and what falls when one link or one person goes."""
    captions = [
        (115, "the data", INK),
        (345, "edge: one link is gone", BAD),
        (575, "node: one person is gone", BAD),
    ]
    words = "".join(_text(x, 165, text, colour=colour) for x, text, colour in captions)
    networks = _network(0) + _network(230, gone_link="bd") + _network(460, gone_person="b")
    return _page(690, 185, networks + words)


def draw_flow() -> str:
    """Draw the way of an answer: from inside, through a debit, to the outside."""
    boxes = [
        (20, 60, 150, "sealed data", "and who is protected", "#fff6e5", WARM),
        (215, 60, 150, "plan", "price and error first", "#fff6e5", WARM),
        (410, 60, 150, "ledger", "paid before noise", "#ffffff", INK),
        (605, 60, 150, "release", "answer + guarantee", "#e9f5f4", COOL),
    ]
    drawn = [
        '<rect x="8" y="34" width="375" height="118" rx="8" fill="none" stroke="#d9a441" '
        'stroke-dasharray="5 4"/>',
        _text(40, 28, "inside", colour="#8a5a00", size=13),
        _text(735, 28, "outside", colour=COOL, size=13),
        '<rect x="590" y="34" width="180" height="118" rx="8" fill="none" stroke="#3f9c97" '
        'stroke-dasharray="5 4"/>',
    ]
    for x, y, width, title, line, fill, edge in boxes:
        drawn.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="66" rx="8" fill="{fill}" '
            f'stroke="{edge}"/>'
        )
        drawn.append(_text(x + width / 2, y + 29, title, size=16))
        drawn.append(_text(x + width / 2, y + 50, line, colour=SOFT, size=12))
    for x in (170, 365, 560):
        drawn.append(
            f'<path d="M {x + 6} 93 h 28 m -8 -6 l 8 6 l -8 6" fill="none" stroke="{INK}" '
            'stroke-width="2"/>'
        )
    return _page(780, 165, "".join(drawn))


def main() -> None:
    """Write both drawings beside the guide."""
    folder = Path(__file__).parent / "pictures"
    folder.mkdir(exist_ok=True)
    (folder / "units.svg").write_text(draw_units(), encoding="utf-8")
    (folder / "flow.svg").write_text(draw_flow(), encoding="utf-8")


if __name__ == "__main__":
    main()
