"""Run three algorithms with one script: only the line that builds the trainer differs.

The script prints mean returns over sets of demonstrations.

python scripts/examples/swap_the_class.py [--sets 20]
"""

import argparse

import gymnasium as gym
import numpy as np
from imitation.algorithms.bc import BC
from imitation.algorithms.mce_irl import MCEIRL, TabularPolicy, mce_partition_fh
from imitation.data import rollout
from imitation.data.wrappers import RolloutInfoWrapper
from imitation.rewards.reward_nets import BasicRewardNet
from seals.base_envs import ExposePOMDPStateWrapper
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import DummyVecEnv

from rlfd_gym import RLfDTrainer
from rlfd_gym.report import run_script

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--sets", type=int, default=5, help="how many sets of ten demonstrations, 20 s each (default 5)")
options = parser.parse_args()

rng = np.random.default_rng(0)
set_random_seed(0)  # torch's draws
env = gym.make("seals:seals/CliffWorld7x4-v0").unwrapped  # 28 cells: the goal is cell 6, the cliff 1 to 5
venv = DummyVecEnv([lambda: RolloutInfoWrapper(ExposePOMDPStateWrapper(env))])
venv.seed(0)
expert = TabularPolicy(env.state_space, env.action_space, mce_partition_fh(env)[2], rng)


def episodes(policy, n):
    """Return n episodes of a policy."""
    return rollout.rollout(policy, venv, rollout.make_sample_until(min_episodes=n), rng=rng)


def guess(state, action):
    """Return a prior cost: the goal is good, the cliff is bad."""
    return -1.0 if state == 6 else 1.0 if 1 <= state <= 5 else 0.1


returns = {"expert": [rollout.rollout_stats(episodes(expert, 500))["return_mean"]]}
for _ in range(options.sets):
    demos = episodes(expert, 10)
    net = BasicRewardNet(env.observation_space, env.action_space, use_action=False, hid_sizes=[])
    spaces = {"observation_space": venv.observation_space, "action_space": venv.action_space}
    trainers = {
        "BC": BC(**spaces, demonstrations=demos, rng=rng),
        "MCEIRL": MCEIRL(demos, env, net, rng),
        "RLfD": RLfDTrainer(demos, env, rng=rng),
        "RLfD + prior": RLfDTrainer(demos, env, rng=rng, prior=guess, alpha=0.1),
        "prior alone": RLfDTrainer(demos, env, rng=rng, prior=guess, alpha=100.0),
    }
    for name, trainer in trainers.items():
        trainer.train(**{"n_epochs": 100} if name == "BC" else {})  # BC needs to know how long
        mean = rollout.rollout_stats(episodes(trainer.policy, 500))["return_mean"]
        returns.setdefault(name, []).append(mean)


def show():
    """Print the mean returns, with their standard errors."""
    for name, means in returns.items():
        spread = np.std(means, ddof=1) / np.sqrt(len(means)) if len(means) > 1 else 0.0
        print(f"{name:<14}{np.mean(means):6.1f} ± {spread:.1f}")


run_script(show)
