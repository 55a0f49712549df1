"""`rlfd envs`: the environments of the library, with their sizes."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from rlfd_gym.command.parser import SUCCESS, Printed, add_json, columns

DESCRIPTION = """List the environments that `gymnasium.make` knows after `import rlfd_gym`.

  rlfd envs
  rlfd envs --json"""


def add(subcommands: Any) -> None:
    """Declare the options."""
    parser = subcommands.add_parser("envs", help="list the environments", description=DESCRIPTION)
    add_json(parser)
    parser.set_defaults(work=list_envs, parser=parser)


def list_envs(options: Namespace) -> int:
    """Print each environment's id, size and discount, and the first line of its description."""
    import gymnasium as gym

    from rlfd_gym.registration import env_ids

    found = []
    for env_id in env_ids():
        env: Any = gym.make(env_id).unwrapped
        found.append(
            {
                "id": env_id,
                "states": env.mdp.n_states,
                "pairs": env.mdp.n_pairs,
                "discount": env.mdp.discount,
                "description": (type(env).__doc__ or "").strip().partition("\n")[0],
            }
        )
    printed = Printed(options.json)
    printed.result({"envs": found})
    if not options.json:
        printed.text(*columns([tuple(found[0]), *(tuple(map(str, row.values())) for row in found)]))
    return SUCCESS
