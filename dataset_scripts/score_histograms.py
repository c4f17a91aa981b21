"""Draw the scores of each way of drawing as histograms above each other on one axis."""

from collections.abc import Iterator, Mapping
from html import escape

import numpy as np

BINS = 60
LEFT, WIDTH, HEIGHT, GAP = 170, 520, 46, 10  # pixels: of the names, of a histogram, between two
COLOUR = "#4c72b0"


def svg_histograms(scores: Mapping[str, np.ndarray]) -> str:
    """Return an SVG. Every histogram is scaled to its own highest bar; the line through it is its mean."""
    limits = min(float(s.min()) for s in scores.values()), max(float(s.max()) for s in scores.values())
    total = len(scores) * (HEIGHT + GAP)
    size = f'width="{LEFT + WIDTH + 20}" height="{total + 30}"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">']
    lines.append('<rect width="100%" height="100%" fill="white"/>')
    for row, (name, found) in enumerate(scores.items()):
        lines += _histogram(name, found, limits, row * (HEIGHT + GAP) + GAP)
    lines += _axis(limits, total + GAP)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _histogram(name: str, scores: np.ndarray, limits: tuple[float, float], top: int) -> Iterator[str]:
    counts, _ = np.histogram(scores, BINS, limits)
    width = WIDTH / BINS
    yield f'<text x="0" y="{top + 20}">{escape(name)}</text>'
    yield f'<text x="0" y="{top + 36}" fill="#777">{len(scores):,} pairs, mean {scores.mean():.2f}</text>'
    for place, share in enumerate(counts / counts.max()):
        if share:
            bar, x = share * HEIGHT, LEFT + place * width
            size = f'width="{width:.1f}" height="{bar:.1f}"'
            yield f'<rect x="{x:.1f}" y="{top + HEIGHT - bar:.1f}" {size} fill="{COLOUR}"/>'
    mean = _x(float(scores.mean()), limits)
    yield f'<line x1="{mean:.1f}" x2="{mean:.1f}" y1="{top}" y2="{top + HEIGHT}" stroke="#c44e52" stroke-width="1.5"/>'


def _axis(limits: tuple[float, float], top: int) -> Iterator[str]:
    yield f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{top - GAP}" y2="{top - GAP}" stroke="#777"/>'
    for value in np.linspace(*limits, 5):
        yield f'<text x="{_x(value, limits):.1f}" y="{top + 6}" text-anchor="middle" fill="#777">{value:.2f}</text>'


def _x(value: float, limits: tuple[float, float]) -> float:
    return LEFT + WIDTH * (value - limits[0]) / (limits[1] - limits[0])
