"""Explain the similarity of two sentences: the page of the Space."""

import os

from ctxsim_hf import OriginSimilarity
from ctxsim_hf.origin.similarity import DEFAULT_ORIGIN
from ctxsim_hf.page.build import build_page
from ctxsim_hf.page.content import Comparison

origin = OriginSimilarity.from_pretrained(os.environ.get("CTXSIM_ORIGIN", DEFAULT_ORIGIN))
demo = build_page("Origin: how alike are two sentences?", Comparison(origin))

if __name__ == "__main__":
    demo.launch()
