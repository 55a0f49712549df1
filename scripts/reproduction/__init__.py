"""The paper's experiments, one module each; `scripts/reproduce.py` runs them."""
