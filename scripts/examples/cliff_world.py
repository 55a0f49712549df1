"""Compare MCEIRL and RLfDTrainer in imitation's own tabular setting.

python scripts/examples/cliff_world.py          # or with numbers of demonstrations: ... 5 30

Both learn from the same demonstrations and are evaluated in the same way. Only the class differs
between the constructor calls; RLfDTrainer is also trained with a prior. The demonstrator is the
soft-optimal policy of imitation's tutorial, which changes as the end of the episode comes nearer.
This favours MCEIRL, whose policy knows the time. RLfDTrainer's policy does not, and without a
prior it does what the demonstrator was seen to do.
"""

from __future__ import annotations

import argparse
import copy
import warnings

import gymnasium as gym
import numpy as np
from imitation.algorithms.mce_irl import MCEIRL, TabularPolicy, mce_partition_fh
from imitation.data import rollout
from imitation.data.wrappers import RolloutInfoWrapper
from imitation.rewards.reward_nets import BasicRewardNet
from seals.base_envs import ExposePOMDPStateWrapper
from stable_baselines3.common.vec_env import DummyVecEnv

from rlfd_gym import RLfDTrainer
from rlfd_gym.report import run_script
from rlfd_gym.trainer import quiet_logger

EPISODES = 500


def main(sizes: tuple[int, ...]) -> None:
    """Train both algorithms, on more and more demonstrations."""
    warnings.filterwarnings("ignore", message="demonstrations end early")  # the horizon is 9
    rng = np.random.default_rng(0)
    env = gym.make("seals:seals/CliffWorld7x4-v0").unwrapped
    venv = DummyVecEnv([lambda: RolloutInfoWrapper(ExposePOMDPStateWrapper(env))])
    net = BasicRewardNet(env.observation_space, env.action_space, use_action=False, hid_sizes=[])
    expert = TabularPolicy(env.state_space, env.action_space, mce_partition_fh(env)[2], rng)
    quiet = quiet_logger()

    def evaluate(policy: object) -> str:
        trajectories = rollout.rollout(policy, venv, rollout.make_sample_until(min_episodes=EPISODES), rng=rng)
        returns = np.array([t.rews.sum() for t in trajectories])
        return f"{returns.mean():7.2f} ± {returns.std() / len(returns) ** 0.5:.2f}"

    print(f"mean return over {EPISODES} episodes of 9 steps, ± standard error")
    print(f"{'expert':<34}{evaluate(expert)}")
    for n in sizes:
        demos = rollout.rollout(expert, venv, rollout.make_sample_until(min_episodes=n), rng=rng)
        for algorithm, more in ((MCEIRL, {}), (RLfDTrainer, {}), (RLfDTrainer, {"prior": guess})):
            trainer = algorithm(demos, env, copy.deepcopy(net), rng, custom_logger=quiet, **more)
            trainer.train()
            name = f"{algorithm.__name__}{' + prior' if more else ''}, {n} demos"
            print(f"{name:<34}{evaluate(trainer.policy)}", flush=True)


def guess(state: int, action: int) -> float:
    """Return a prior cost: the goal is good, the cliff is bad, the rest is in between."""
    return {0: 0.1, 6: -1.0}.get(state, 1.0 if state < 6 else 0.1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "sizes", type=int, nargs="*", default=[5, 30, 300], help="numbers of demonstrations (default 5 30 300)"
    )
    run_script(lambda: main(tuple(parser.parse_args().sizes)))
