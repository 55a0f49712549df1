"""Draw the pictures of the documentation that show no study: the overview, the flow chart, the animations.

    python scripts/draw_docs.py                          # into docs/pictures/

The overview is the README's example, solved again. The animations are what the environments render,
with the paper's expert in the inventory and a noisy one on the grid. The flow chart is plain SVG, in
the colours of the page that it is included in.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from PIL import Image

import rlfd_gym
from rlfd_gym.envs import InventoryEnv, TabularEnv
from rlfd_gym.report import plots, run_script, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RANGES = {"order": (2.5, 5.0), "holding": (0.3, 3.0), "sell": (13.0, 16.0)}
BELIEVED = (5, 8, 15)
GREY = "#8a8a8a"
LINE, BOX, GAP, WIDTH = 15, 62, 22, 430


@dataclass(frozen=True)
class Question:
    """A question of the flow chart, and what to do if the answer is yes."""

    text: Sequence[str]
    answer: Sequence[str]


QUESTIONS = (
    Question(("More than a million pairs of state", "and action, or continuous ones?"), ("imitation: BC, GAIL, AIRL",)),
    Question(("Do you trust your costs fully?",), ("just plan:", "mdp.optimal(cost)")),
    Question(
        ("Can you give ranges of prices,", "or of costs?"), ("belief=Prices(...) or", "Intervals(...): a guarantee")
    ),
    Question(("Can you guess the costs?",), ("prior=guess, alpha=0.01,", "or a rule that chooses α")),
    Question(("Several experts, and you know how", "bad each is at most?"), ("solve_experts",)),
    Question(("Does the expert err at random?",), ("the majority action, or", 'policy_kind="mode"')),
)
LAST = ("imitate: cloning, MCE-IRL",)


def main(arguments: list[str] | None = None) -> None:
    """Draw everything, or what is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"), help="output folder")
    out = parser.parse_args(arguments).out
    write(out / "overview.png", plots.png(overview()))
    write(out / "flow.svg", flow_chart().encode())
    for name, content in animations().items():
        write(out / f"{name}.gif", content)
    print(f"written: {', '.join(sorted(path.name for path in out.iterdir()))} in {out}")


def overview() -> Figure:
    """Return the README's example as a picture: expert, ranges, apprentice, guarantee."""
    env = inventory()
    mdp, truth = env.mdp, env.cost
    expert = mdp.optimal(env.cost_for(*BELIEVED))
    belief = env.price_ranges(**RANGES)
    apprentice = rlfd_gym.solve_exact(rlfd_gym.RLfDProblem(mdp, expert.occupancy, belief=belief))
    assert apprentice.guarantee is not None
    least = 100 * apprentice.guarantee.improvement
    true = 100 * (expert.occupancy @ truth - mdp.expected_cost(apprentice.policy, truth))

    figure, grid = plots.new_figure(1, 4, size=(11.0, 2.7))
    axes = grid[0]
    stock = np.arange(mdp.n_states)
    orders = {"expert": mean_action(mdp, expert.policy), "apprentice": mean_action(mdp, apprentice.policy)}
    for axis, who, colour in ((axes[0], "expert", GREY), (axes[2], "apprentice", plots.BLUE)):
        axis.bar(stock, orders[who], color=colour)
        axis.set(xlabel="units in stock", ylim=(0, 15.5), xticks=(0, 5, 10, 15), yticks=(0, 5, 10, 15))
    axes[0].set(title="your expert", ylabel="units ordered")
    axes[2].plot(stock, orders["expert"], color=GREY, drawstyle="steps-mid")
    axes[2].set(title="the apprentice")
    axes[2].text(15, 14, "grey: the expert", color=GREY, ha="right", va="top", fontsize=8)
    for row, (name, (low, high)) in enumerate(reversed(RANGES.items())):
        axes[1].plot((low, high), (row, row), color=plots.GREEN, linewidth=7, solid_capstyle="butt")
        axes[1].text(0.0, row + 0.22, f"{name}: {low:g} to {high:g}", fontsize=9)
    axes[1].set(
        title="what you know: ranges of prices", xlim=(0, 17), ylim=(-0.4, 2.7), yticks=(), xlabel="money per unit"
    )
    axes[3].bar((0, 1), (least, true), color=(plots.VERMILION, "#e8b89a"))
    for x, height in ((0, least), (1, true)):
        axes[3].text(x, height, f"{height:.1f}" if x == 0 else f"{height:.0f}", ha="center", va="bottom")
    axes[3].set(title="points better than the expert", xticks=(0, 1), ylim=(0, 1.2 * true), yticks=())
    axes[3].set_xticklabels(("guaranteed", "in truth"))
    for axis in axes:
        axis.title.set_fontsize(10)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in (axes[1], axes[3]):
        axis.spines["left"].set_visible(False)
    return figure


def flow_chart() -> str:
    """Return the questions below each other, and their answers beside them, as SVG without a size."""
    height = len(QUESTIONS) * (BOX + GAP) + BOX
    parts = [
        f'<svg class="flow" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'aria-label="Which method when: questions, each with what to do if the answer is yes" '
        'font-family="sans-serif" font-size="12.5" fill="currentColor" stroke="none">',
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z"/></marker></defs>',
    ]
    for number, question in enumerate(QUESTIONS):
        top = number * (BOX + GAP)
        middle, bottom = top + BOX / 2, top + BOX
        parts += [
            _box(1, top + 1, 222, question.text, rounded=BOX / 2 - 1),
            _box(268, top + 1, WIDTH - 269, question.answer, rounded=4, strong=True),
            f'<path d="M224,{middle} L264,{middle}" stroke="currentColor" marker-end="url(#tip)"/>',
            f'<text x="230" y="{middle - 5}" font-size="11">yes</text>',
            f'<path d="M112,{bottom} L112,{bottom + GAP - 3}" stroke="currentColor" marker-end="url(#tip)"/>',
            f'<text x="118" y="{bottom + 14}" font-size="11">no</text>',
        ]
    parts += [_box(1, height - BOX, 222, LAST, rounded=4, strong=True), "</svg>"]
    return "\n".join(parts) + "\n"


def _box(x: float, y: float, width: float, lines: Sequence[str], rounded: float, strong: bool = False) -> str:
    first = y + (BOX - 2) / 2 - (len(lines) - 1) * LINE / 2 + 4
    weight = 2 if strong else 1
    text = "".join(
        f'<text x="{x + width / 2}" y="{first + k * LINE}" text-anchor="middle">{escape(line)}</text>'
        for k, line in enumerate(lines)
    )
    frame = f'<rect x="{x}" y="{y}" width="{width}" height="{BOX - 2}" rx="{rounded}" fill="none"'
    return f'{frame} stroke="currentColor" stroke-width="{weight}"/>{text}'


def animations() -> dict[str, bytes]:
    """Return an animation of each environment, by the name of its page."""
    shop = {}
    for name in ("Inventory", "InventoryPaper"):
        env = gym.make(f"rlfd_gym/{name}-v0", render_mode="rgb_array")
        inner = env.unwrapped
        assert isinstance(inner, InventoryEnv)
        shop[name] = film(env, inner.mdp.optimal(inner.cost).policy, steps=14)
    env = gym.make("rlfd_gym/WindyGridworld-v0", render_mode="rgb_array")
    inner = env.unwrapped
    assert isinstance(inner, TabularEnv)
    noisy = rlfd_gym.noisy_expert(inner.mdp, inner.cost, noise=0.3)
    lake = gym.make("FrozenLake-v1", render_mode="rgb_array", is_slippery=True)
    model = rlfd_gym.TabularMDP.from_env(lake, discount=0.99)
    return {
        "inventory": shop["Inventory"],
        "inventory_paper": shop["InventoryPaper"],
        "windy_gridworld": film(env, inner.mdp.policy_of(noisy), steps=28, start=9),
        "frozen_lake": film(lake, model.optimal(rlfd_gym.cost_of_env(lake)).policy, steps=24, mdp=model),
    }


def film(
    env: gym.Env[int, int],
    policy: NDArray[np.float64],
    steps: int,
    start: int | None = None,
    mdp: rlfd_gym.TabularMDP | None = None,
) -> bytes:
    """Return what an environment renders while a policy acts in it, as a small GIF."""
    rng = np.random.default_rng(1)
    inner = env.unwrapped
    tables = inner.mdp if mdp is None and isinstance(inner, TabularEnv) else mdp
    assert tables is not None
    state, _ = env.reset(seed=2, options=None if start is None else {"state": start})
    frames = [env.render()]
    for _ in range(steps):
        pairs = slice(*tables.state_starts[state : state + 2])
        action = int(rng.choice(tables.pair_actions[pairs], p=policy[pairs]))
        state, _, terminated, truncated, _ = env.step(action)
        frames.append(env.render())
        if terminated or truncated:
            break
    images = []
    for frame in frames:
        image = Image.fromarray(np.asarray(frame, dtype=np.uint8))
        scale = 320 / max(image.size)
        small = image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.LANCZOS)
        images.append(small.quantize(64))
    content = io.BytesIO()
    images[0].save(content, "GIF", save_all=True, append_images=images[1:], duration=450, loop=0, optimize=True)
    return content.getvalue()


def inventory() -> InventoryEnv:
    """Return the paper's inventory."""
    env = gym.make("rlfd_gym/Inventory-v0").unwrapped
    assert isinstance(env, InventoryEnv)
    return env


def mean_action(mdp: rlfd_gym.TabularMDP, policy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean action of each state."""
    return np.bincount(mdp.pair_states, weights=policy * mdp.pair_actions, minlength=mdp.n_states)


if __name__ == "__main__":
    run_script(main)
