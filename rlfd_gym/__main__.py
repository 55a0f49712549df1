"""`python -m rlfd_gym`: the command `rlfd`, where its script is not on the search path."""

from __future__ import annotations

from rlfd_gym.command import run

if __name__ == "__main__":
    run()
