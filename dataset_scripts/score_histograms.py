"""Draw the scores of each way of drawing as histograms above each other on one axis."""

from collections.abc import Iterator, Mapping
from html import escape

import numpy as np

BINS = 60
LEFT, WIDTH, HEIGHT, GAP = 170, 520, 46, 10  # pixels: of the names, of a histogram, between two
COLOUR = "#4c72b0"
RANDOM = "random"  # the way of drawing whose mean is chance
OUTSIDE = 0.2  # percent of a histogram's scores at either end, which may be drawn at the edge
LABEL = "similarity; red: mean, dashed: chance, the mean of random pairs"


def svg_histograms(scores: Mapping[str, np.ndarray]) -> str:
    """Return an SVG. Every histogram is scaled to its own highest bar."""
    ends = np.array([np.percentile(found, [OUTSIDE, 100 - OUTSIDE]) for found in scores.values()])
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    limits = (low, high) if low < high else (low - 1, high + 1)
    total = len(scores) * (HEIGHT + GAP)
    size = f'width="{LEFT + WIDTH + 20}" height="{total + 48}"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">']
    lines.append('<rect width="100%" height="100%" fill="white"/>')
    for row, (name, found) in enumerate(scores.items()):
        lines += _histogram(name, found, limits, row * (HEIGHT + GAP) + GAP)
    if RANDOM in scores:
        x = _x(float(scores[RANDOM].mean()), limits)
        place = f'x1="{x:.1f}" x2="{x:.1f}" y1="{GAP}" y2="{total}"'
        lines.append(f'<line {place} stroke="#333" stroke-dasharray="4 3"/>')
    lines += _axis(limits, total + GAP)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _histogram(name: str, scores: np.ndarray, limits: tuple[float, float], top: int) -> Iterator[str]:
    counts, _ = np.histogram(np.clip(scores, *limits), BINS, limits)
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
    for value in _round_numbers(*limits):
        yield f'<text x="{_x(value, limits):.1f}" y="{top + 6}" text-anchor="middle" fill="#777">{value:.2g}</text>'
    yield f'<text x="{LEFT + WIDTH / 2}" y="{top + 26}" text-anchor="middle">{LABEL}</text>'


def _round_numbers(low: float, high: float) -> np.ndarray:
    """Return four to eight round numbers between two others."""
    power = 10 ** np.floor(np.log10((high - low) / 8))
    step = next(step for step in power * np.array([1, 2, 5, 10]) if (high - low) / step <= 8)
    return step * np.arange(np.ceil(low / step), np.floor(high / step) + 1) + 0.0  # without -0


def _x(value: float, limits: tuple[float, float]) -> float:
    return LEFT + WIDTH * (value - limits[0]) / (limits[1] - limits[0])
