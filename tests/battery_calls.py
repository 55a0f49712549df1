"""A valid call of every public callable, with the kind of each of its arguments; `battery` tries bad values in them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import battery as bad
import numpy as np
from battery import Argument, Call

import rlfd_gym
from rlfd_gym import alpha, baselines, beliefs, compare, decision, experts, report
from rlfd_gym.envs import InventoryEnv, WindyGridworldEnv, ascii_layout, paper_layout, random_layout
from rlfd_gym.experts import logs
from rlfd_gym.experts.logs import read_costs
from rlfd_gym.experts.scale import CostScale
from rlfd_gym.mdp import Pairs, model_of_arrays, model_of_env, model_of_quantecon, over_time, soft_optimal
from rlfd_gym.problem import HullProblem, examples
from rlfd_gym.report import plots

RATIOS = "only ratios matter, and their sums do not overflow"
UNIFORM = "None means uniform"
DEFAULT = "None means the default"
FILE = "as the file tells"
LATER = "`set_demonstrations` may come later, as in imitation"
AFFINE = "an affine map of any shape of numbers"
LENGTHS = ("one_too_few", "one_too_many", "twice")
SHAPE = {label: AFFINE for label in ("a number", "one too few", "one too many", "twice", "two axes more")}
NOTHING = {label: "no costs give no costs" for label in ("empty", "an empty list")}

FEASIBLE = np.array([[True, True], [True, True], [True, False]])
DENSE = np.array([[[0.5, 0.5, 0], [0, 1, 0]], [[0, 0, 1], [0.25, 0.5, 0.25]], [[1, 0, 0], [0, 0, 1]]])


def arg(valid, kind, called="", **accepts):
    """Return an argument; what it accepts is given as label=reason, with _ for a space."""
    return Argument(valid, kind, {label.strip("_").replace("_", " "): why for label, why in accepts.items()}, called)


def calls() -> dict[str, Call]:
    """Return the calls that need neither torch nor imitation."""
    mdp = rlfd_gym.TabularMDP.from_dense(DENSE, [0.5, 0.25, 0.25], discount=0.6, feasible=FEASIBLE)
    cost, prior = np.array([0.1, -0.2, 0.3, 0.9, -0.5]), np.array([0.2, -0.1, 0.4, 0.5, -0.4])
    ddp = SimpleNamespace(R=mdp.table(-cost, -np.inf), Q=DENSE, beta=0.6, s_indices=None, a_indices=None)
    plan = mdp.optimal(cost)
    policy, occupancy = mdp.uniform_policy(), mdp.occupancy_of(mdp.uniform_policy())
    problem = rlfd_gym.RLfDProblem(mdp, occupancy, prior, 0.1)
    sparse = rlfd_gym.RLfDProblem(mdp, occupancy, prior, 0.01, "l1")
    basis = np.array([[0.5, -1.0], [0.25, 0.5], [1.0, 0.0], [-0.5, 0.25], [0.0, 1.0]])
    hull = HullProblem(problem, basis)
    shop, grid = InventoryEnv(3, 2.0), WindyGridworldEnv(4, 3)
    walks = rlfd_gym.demonstrate(mdp, policy, 3, 20, seed=0)
    states, actions, following = np.array([0, 1, 2, 0]), np.array([1, 0, 0, 0]), np.array([1, 2, 0, 1])
    expert = rlfd_gym.SampledExpert([0, 1, 2], [1, 0, 0], [1, 2, 0])
    walked = rlfd_gym.SampledExpert([0, 1, 2], [1, 0, 0], [1, 2, 0])
    drawn = rlfd_gym.BlackBoxProblem(
        rlfd_gym.simulate(mdp),
        walked,
        n_states=3,
        n_actions=2,
        discount=0.6,
        prior=prior,
        alpha=0.1,
        feasible=FEASIBLE,
    )
    rng = np.random.default_rng(0)
    started = WindyGridworldEnv(4, 3)
    started.reset(seed=0)
    folder = Path(tempfile.mkdtemp(prefix="battery-"))
    path = rlfd_gym.alpha_path(problem, [0.01, 0.1, 1.0])
    solution = rlfd_gym.solve_exact(problem)
    log = rlfd_gym.read_log((states, actions, following), discount=0.6)
    paid = {"state": states, "action": actions, "next_state": following, "paid": [1.0, 2.0, 3.0, 4.0]}
    paid = rlfd_gym.read_log(paid, discount=0.6, columns=["paid"])
    costs = {pair: 0.5 for pair in log.pair_labels()}

    posterior = baselines.bayesian_irl(mdp, occupancy, prior, rationality=5.0, prior_spread=0.2, n_decisions=10).state

    mdp_ = arg(mdp, bad.own)
    pairs, vector = arg(cost, bad.numbers), arg(np.zeros(3), bad.numbers)
    share = arg(0.3, bad.number(-0.1, 1.1))
    discount = arg(0.6, bad.number(0.0, 1.0, -0.5, 1 - 1e-13))
    expert_ = arg(occupancy, bad.occupancy_or_demonstrations, called="demonstrations")
    basis_ = arg(basis, bad.numbers)
    shown = arg(walks, bad.demonstrations)
    count = arg(5, bad.integer(0, -1))
    weight = arg(0.1, bad.number(-0.1))
    seed = arg(0, bad.seed)
    indices = {
        "states": arg(states, bad.integers, called="states, actions", **SCALARS),
        "actions": arg(actions, bad.integers, **SCALARS),
    }
    generator = arg(rng, bad.own)
    point = {"x": arg(cost, bad.numbers, called="cost"), "value": vector, "occupancy": arg(occupancy, bad.distribution)}
    free = {"x": arg(cost, bad.numbers, called="cost"), "value": vector, "occupancy": arg(occupancy, bad.numbers)}
    scale_ = arg(CostScale(-1.0, 1.0), bad.own, None_="not in money")
    bound, epsilon = arg("corrected", bad.name), arg(0.5, bad.number(0.0, -1.0, 1e-200))

    def at(function, untried=None, may_be_nan="", **arguments):
        return Call(function, arguments, untried or {}, may_be_nan)

    def tuple_log(states, actions, following, **options):
        return rlfd_gym.TabularMDP.from_transitions(states, actions, following, **options)

    return {
        # --- mdp
        "rlfd_gym.TabularMDP": at(
            rlfd_gym.TabularMDP,
            transitions=arg(mdp.transitions.toarray(), bad.distribution, sparse="sparse tables are tables"),
            pair_states=arg(mdp.pair_states, bad.integers),
            pair_actions=arg(mdp.pair_actions, bad.integers, called="n_actions"),
            initial=arg(mdp.initial, bad.distribution, None_=UNIFORM),
            discount=discount,
            n_actions=arg(2, bad.integer(0, 1), None_="None means the largest action plus one"),
        ),
        "TabularMDP.from_dense": at(
            rlfd_gym.TabularMDP.from_dense,
            P=arg(DENSE, bad.distribution, called="transitions"),
            initial=arg(mdp.initial, bad.distribution, None_=UNIFORM),
            discount=discount,
            feasible=arg(FEASIBLE, bad.mask, None_="None means all"),
            layout=arg("sas", bad.name),
        ),
        "mdp.model_of_arrays": at(
            model_of_arrays,
            P=arg(DENSE, bad.distribution, called="transitions"),
            R=arg(mdp.table(cost, 0.0), bad.numbers),
            initial=arg(mdp.initial, bad.distribution, None_=UNIFORM),
            discount=discount,
            feasible=arg(FEASIBLE, bad.mask, None_="None means all"),
            layout=arg("sas", bad.name),
        ),
        "TabularMDP.from_quantecon": at(
            rlfd_gym.TabularMDP.from_quantecon,
            ddp=arg(ddp, bad.own),
            initial=arg(mdp.initial, bad.distribution, None_=UNIFORM),
        ),
        "mdp.model_of_quantecon": at(
            model_of_quantecon, ddp=arg(ddp, bad.own), initial=arg(mdp.initial, bad.distribution, None_=UNIFORM)
        ),
        "TabularMDP.from_env": at(
            rlfd_gym.TabularMDP.from_env,
            env=arg(shop, bad.environment),
            discount=arg(0.6, bad.number(0.0, 1.0), None_="the environment's own"),
            initial=arg(shop.mdp.initial, bad.distribution, None_="the environment's own"),
        ),
        "mdp.model_of_env": at(
            model_of_env,
            env=arg(shop, bad.environment),
            discount=arg(0.6, bad.number(0.0, 1.0), None_="the environment's own"),
            initial=arg(shop.mdp.initial, bad.distribution, None_="the environment's own"),
        ),
        "rlfd_gym.cost_of_env": at(rlfd_gym.cost_of_env, env=arg(shop, bad.environment)),
        "TabularMDP.from_transitions": at(
            tuple_log,
            states=arg(states, columns, called="(state|columns)"),
            actions=arg(actions, columns, called="(action|columns)"),
            following=arg(following, columns, called="(next_state|columns)"),
            discount=discount,
            smoothing=arg(0.5, bad.number(-0.1)),
            unvisited=arg("self", bad.name),
            initial=arg([0.5, 0.25, 0.25], bad.distribution, None_="from the log"),
        ),
        "TabularMDP.flow": at(mdp.flow, occupancy=arg(occupancy, bad.numbers)),
        "TabularMDP.flow_transpose": at(mdp.flow_transpose, value=vector),
        "TabularMDP.flow_matrix": at(mdp.flow_matrix),
        "TabularMDP.horizon": at(mdp.horizon, tail=arg(0.1, bad.number(0.0, 1.0, -1.0))),
        "TabularMDP.optimal": at(mdp.optimal, cost=pairs, method=arg("auto", bad.name)),
        "mdp.soft_optimal": at(
            soft_optimal,
            mdp=mdp_,
            cost=pairs,
            rationality=arg(5.0, bad.number(0.0, -1.0)),
            start=arg(np.zeros(3), bad.numbers, None_="from the cheapest actions"),
            tolerance=weight,
        ),
        "TabularMDP.occupancy_of": at(mdp.occupancy_of, policy=arg(policy, bad.distribution)),
        "TabularMDP.policy_of": at(
            mdp.policy_of,
            occupancy=Argument(
                occupancy,
                bad.distribution,
                {label: RATIOS for label in ("1e308", "all 1e308", "twice its sum", "zeros")},
            ),
        ),
        "TabularMDP.value_of": at(mdp.value_of, policy=arg(policy, bad.distribution), cost=pairs),
        "TabularMDP.expected_cost": at(mdp.expected_cost, policy=arg(policy, bad.distribution), cost=pairs),
        "mdp.over_time": at(
            over_time,
            mdp=mdp_,
            horizon=arg(4, bad.integer(0, -1)),
            discount=arg(1.0, bad.number(0.0, 1.1, -0.5)),
        ),
        "mdp.Pairs": at(
            Pairs,
            pair_states=arg(mdp.pair_states, bad.integers),
            pair_actions=arg(mdp.pair_actions, bad.integers),
            n_states=arg(3, bad.integer(0, 2, 4), called="pair_states"),
            n_actions=arg(2, bad.integer(0, 1), called="pair_actions"),
            state_starts=arg(mdp.state_starts, bad.integers),
        ),
        "Pairs.of_mask": at(Pairs.of_mask, feasible=arg(FEASIBLE, bad.mask, **dict.fromkeys(
            ("one_too_few", "one_too_many", "twice", "transposed"), "another environment"))),
        "Pairs.table": at(
            mdp.table,
            may_be_nan="infeasible actions are NaN by default, or what the caller fills in",
            pairs=pairs,
            fill=Argument(0.0, bad.number(), dict.fromkeys(("NaN", "inf", "-inf", "1e308"), "any number may fill")),
        ),
        "Pairs.pairs": at(
            mdp.pairs, {"name": "only words in errors", "largest": "chosen by the library"}, values=pairs
        ),
        "Pairs.pair_index": at(mdp.pair_index, **indices),
        "Pairs.sum_by_state": at(mdp.sum_by_state, pairs=pairs),
        "Pairs.max_by_state": at(mdp.max_by_state, pairs=pairs),
        "Pairs.min_by_state": at(mdp.min_by_state, pairs=pairs),
        "Pairs.likely_actions": at(mdp.likely_actions, policy=arg(policy, bad.numbers)),
        "Pairs.uniform_policy": at(mdp.uniform_policy),
        # --- experts
        "rlfd_gym.noisy_expert": at(rlfd_gym.noisy_expert, mdp=mdp_, cost=pairs, noise=share),
        "rlfd_gym.demonstrate": at(
            rlfd_gym.demonstrate,
            mdp=mdp_,
            policy=arg(policy, bad.distribution),
            n_trajectories=count,
            length=count,
            seed=seed,
        ),
        "rlfd_gym.occupancy_from_demonstrations": at(
            rlfd_gym.occupancy_from_demonstrations,
            demonstrations=shown,
            mdp=mdp_,
            discounting=arg("none", bad.name),
            estimator=arg("policy", bad.name),
            prior=arg(prior, bad.numbers, called="(prior|cost)", None_="uniform in unseen states"),
        ),
        "occupancy_from_demonstrations, an occupancy": at(
            lambda demonstrations: rlfd_gym.occupancy_from_demonstrations(demonstrations, mdp),
            demonstrations=arg(occupancy, bad.occupancy_or_demonstrations),
        ),
        "rlfd_gym.experts.occupancy_from_states": at(
            experts.occupancy_from_states,
            {"name": "only words in errors"},
            states=arg(mdp.sum_by_state(occupancy), bad.numbers),
            mdp=mdp_,
        ),
        "rlfd_gym.occupancy_noise": at(
            rlfd_gym.occupancy_noise,
            demonstrations=shown,
            mdp=mdp_,
            discounting=arg("none", bad.name),
            estimator=arg("policy", bad.name),
            prior=arg(prior, bad.numbers, called="(prior|cost)", None_="uniform in unseen states"),
            n_bootstrap=count,
            seed=seed,
        ),
        "experts.action_variation": at(
            experts.action_variation,
            demonstrations=shown,
            mdp=mdp_,
            confidence=arg(0.9, bad.number(0.0, 1.0, -0.5)),
            n_resamples=count,
            seed=seed,
        ),
        "Solution.read": at(solution.read, mdp=mdp_, kind=arg("greedy", bad.name)),
        "experts.read_demonstrations": at(
            experts.read_demonstrations,
            demonstrations=arg(walks, bad.demonstrations, **dict.fromkeys(
                ("a_state_-1", "an_unknown_state", "an_action_-1", "an_unknown_action"), "only an MDP can tell")),
        ),
        "rlfd_gym.SampledExpert": at(
            rlfd_gym.SampledExpert,
            states=arg(states, bad.integers, called="(states|actions|next_states|weights)", **{
                label: "only an environment can tell" for label in ("out_of_range", "far_out_of_range")}),
            actions=arg(actions, bad.integers, **{
                label: "only an environment can tell" for label in ("out_of_range", "far_out_of_range")}),
            next_states=arg(following, bad.integers, **{
                label: "only an environment can tell" for label in ("out_of_range", "far_out_of_range")}),
            weights=Argument(np.full(4, 0.25), bad.distribution, {"None": "equally often"} | {
                label: RATIOS for label in ("1e308", "all 1e308", "twice its sum")}),
        ),
        "experts.CostScale": at(
            experts.CostScale, low=arg(-1.0, bad.number(2.0, 3.0)), high=arg(2.0, bad.number(-1.0, -3.0), called="low")
        ),
        "CostScale.spanning": at(experts.CostScale.spanning, raw=Argument(
            cost, bad.numbers, {label: AFFINE for label in SHAPE if label != "a number"})),
        "CostScale.to_box": at(experts.CostScale(-1, 1).to_box, raw=Argument(cost, bad.numbers, SHAPE | NOTHING)),
        "CostScale.from_box": at(experts.CostScale(-1, 1).from_box, cost=Argument(cost, bad.numbers, SHAPE | NOTHING)),
        "rlfd_gym.read_log": at(
            rlfd_gym.read_log,
            dict.fromkeys(
                ("state_labels", "action_labels", "feasible", "order", "columns"), "labels: see tests/experts/logs"
            ),
            transitions=arg((states, actions, following), bad.own, called="(table|demonstrations|[.]csv)"),
            discount=discount,
            state=arg("state", column),
            action=arg("action", column),
            next_state=arg("next_state", column, None_="the column of that name, or the following row"),
            episode=arg(None, column, None_="the log has no episodes"),
            time=arg(None, column, None_="in the order of the rows"),
            fold=arg(True, bad.flag),
            ends=arg("stay", bad.name, None_="as the episodes tell"),
            max_dropped=arg(0.05, bad.number(-0.1, 1.1)),
            dialect=arg(logs.Dialect(), bad.own, None_="as the file tells"),
            smoothing=arg(0.5, bad.number(-0.1)),
            unvisited=arg("self", bad.name),
            initial=arg([0.5, 0.25, 0.25], bad.distribution, None_="from the log"),
            expert=arg("policy", bad.name, None_="from the log"),
        ),
        "logs.read_costs": at(
            read_costs,
            source=arg({"state": [0], "action": [1], "cost": [0.5]}, bad.own, called="(table|[.]csv)"),
            state=arg("state", column),
            action=arg("action", column),
            cost=arg("cost", column),
            dialect=arg(logs.Dialect(), bad.own, None_="as the file tells"),
        ),
        "logs.Dialect": at(
            logs.Dialect,
            separator=arg(";", bad.name, None_=FILE),
            decimal=arg(",", bad.name, None_=FILE),
            dates=arg("day-first", bad.name, None_=FILE),
            encoding=arg("latin-1", bad.name, None_=FILE),
        ),
        "logs.log_features": at(
            logs.log_features,
            {"exogenous": "names of columns: see tests/experts/logs"},
            log=arg(log, bad.own),
            features=arg({"buy": "action + 1"}, bad.own, called="feature"),
        ),
        "Log.mean": at(paid.mean, column=arg("paid", bad.name), pooling=arg(1.0, bad.number(-0.1))),
        "decision.decide": at(
            decision.decide,
            {"alpha": "a number or a rule: see select_alpha", "scale": "only with a table: see tests/decision"},
            log=arg(log, bad.own),
            belief=arg(beliefs.NearPrior(np.linspace(-0.5, 0.5, log.mdp.n_pairs), 1.0), bad.own),
            money=arg(np.linspace(-5.0, 5.0, log.mdp.n_pairs), bad.numbers, None_="the prior"),
            reading=arg("mode", bad.name),
            least_rows=arg(1, bad.integer(0, -1)),
            confidence=arg(0.9, bad.number(0.0, 1.0)),
            n_resamples=arg(2, bad.integer(1, 0, -1)),
            seed=seed,
            progress_bar=arg(False, bad.flag),
        ),
        "decision.price_belief": at(
            decision.price_belief,
            {"exogenous": "names of columns: see tests/experts/logs"},
            log=arg(log, bad.own),
            ranges=arg({"buy": (1.0, 2.0)}, bad.own),
            features=arg({"buy": "action + 1"}, bad.own),
            offset=arg(0.5, bad.number()),
        ),
        "decision.prior_belief": at(
            decision.prior_belief,
            log=arg(log, bad.own),
            costs=arg({pair: float(k) for k, pair in enumerate(log.pair_labels())}, bad.own),
            alpha=weight,
            scale=arg(CostScale(-1.0, 9.0), bad.own, None_="spans the costs"),
        ),
        "Log.pair_values": at(lambda table: log.pair_values("table", table), table=arg(costs, bad.own)),
        # --- beliefs
        "beliefs.NearPrior": at(
            beliefs.NearPrior,
            may_be_nan="a table may have gaps, which `over` judges",
            prior=arg(prior, bad.numbers, **ANOTHER_LENGTH),
            alpha=weight,
            norm=arg("l1", bad.name),
            scale=scale_,
            outside_box=arg(False, bad.flag),
            weights=arg(np.ones(5), bad.distribution, None_="None means one each", zeros="no weight",
                        twice_its_sum="any weights", **ANOTHER_LENGTH),
        ),
        "beliefs.Hull": at(
            beliefs.Hull,
            may_be_nan="a table may have gaps, which `over` judges",
            basis=arg(basis, bad.numbers, **ANOTHER_LENGTH),
            prior=arg(prior, bad.numbers, **ANOTHER_LENGTH),
            alpha=arg(0.1, bad.number(-0.1), None_=DEFAULT),
        ),
        "beliefs.Intervals": at(
            beliefs.Intervals,
            may_be_nan="a table may have gaps, which `over` judges",
            low=arg(prior - 0.1, bad.numbers, called="(low|high)"),
            high=arg(prior + 0.1, bad.numbers, called="(low|high)"),
            scale=scale_,
        ),
        "beliefs.Ball": at(
            beliefs.Ball,
            may_be_nan="a table may have gaps, which `over` judges",
            prior=arg(prior, bad.numbers, **ANOTHER_LENGTH),
            radius=arg(0.5, bad.number(-0.1)),
            scale=scale_,
        ),
        "beliefs.Prices": at(
            beliefs.Prices,
            {"names": "any texts, one per price"},
            features=arg(basis, bad.numbers, called="(features|offset)"),
            low=arg([0.1, 0.2], bad.numbers, called="(low|high)"),
            high=arg([0.3, 0.4], bad.numbers, called="(low|high)"),
            offset=arg(np.zeros(5), bad.numbers, a_number="the same for all pairs"),
            prior=arg([0.2, 0.3], bad.numbers),
            alpha=weight,
            scale=scale_,
        ),
        "Belief.with_alpha": at(problem.belief.with_alpha, alpha=weight),
        "Belief.over": at(problem.belief.over, pairs=arg(mdp, bad.own)),
        "Belief.vector": at(problem.belief.vector, x=arg(cost, bad.numbers, called="cost")),
        "Belief.second_moment": at(problem.belief.second_moment, bound=bound),
        "Hull.vector": at(hull.belief.vector, x=arg([0.5, 0.5], bad.numbers, called="mixture")),
        "Hull.check": at(hull.belief.check, x=arg([0.5, 0.5], bad.distribution, called="mixture")),
        "beliefs.check_basis": at(
            beliefs.check_basis,
            basis=basis_,
            n_pairs=arg(5, bad.integer(4), called="basis", None_="any"),
            box=arg(True, bad.flag),
            name=arg("basis", lambda _: {}),
        ),
        "beliefs.scale_basis": at(
            beliefs.scale_basis,
            basis=arg(basis, bad.numbers, **ANOTHER_LENGTH),
        ),
        # --- problem
        "rlfd_gym.RLfDProblem": at(
            rlfd_gym.RLfDProblem,
            mdp=mdp_,
            expert=arg(occupancy, bad.distribution),
            prior=pairs,
            alpha=arg(0.1, bad.number(-0.1), None_=DEFAULT),
            regulariser=arg("l2", bad.name),
            belief=arg(None, bad.own, None_="prior and alpha say it"),
        ),
        "RLfDProblem.with_belief": at(problem.with_belief, belief=arg(problem.belief, bad.own)),
        "RLfDProblem.with_alpha": at(problem.with_alpha, alpha=weight),
        "RLfDProblem.penalty": at(problem.penalty, x=arg(cost, bad.numbers, called="cost")),
        "RLfDProblem.lagrangian": at(problem.lagrangian, **free),
        "RLfDProblem.gradients": at(problem.gradients, **free),
        "RLfDProblem.best_cost": at(problem.best_cost, occupancy=arg(occupancy, bad.numbers)),
        "RLfDProblem.bounds": at(problem.bounds, **point),
        "RLfDProblem.duality_gap": at(problem.duality_gap, **point),
        "RLfDProblem.bounds, on a hull": at(
            hull.bounds, **point | {"x": arg([0.5, 0.5], bad.distribution, called="(mixture|cost)")}
        ),
        "Problem.second_moments": at(problem.second_moments, bound=bound),
        "Problem.step_sizes": at(problem.step_sizes, epsilon=epsilon, bound=bound),
        "Problem.iterations": at(problem.iterations, epsilon=epsilon, bound=bound),
        "Problem.accuracy": at(
            problem.accuracy, n_iterations=arg(5, bad.integer(0, -1), the_largest_int="a formula"), bound=bound
        ),
        "Problem.start": at(problem.start, rng=generator, uniform=arg(True, bad.flag)),
        "Problem.step_sizes, on a hull": at(hull.step_sizes, epsilon=epsilon, bound=bound),
        "Problem.iterations, on a hull": at(hull.iterations, epsilon=epsilon, bound=bound),
        "problem.HullProblem": at(HullProblem, problem=arg(problem, bad.own), basis=basis_),
        "rlfd_gym.BlackBoxProblem": at(
            rlfd_gym.BlackBoxProblem,
            oracle=arg(shop, bad.own),
            expert=arg(expert, bad.own),
            n_states=arg(3, bad.integer(0, 2), called="(feasible|expert)"),
            n_actions=arg(2, bad.integer(0, 1), called="(feasible|expert)"),
            discount=discount,
            prior=pairs,
            alpha=arg(0.1, bad.number(-0.1), None_=DEFAULT),
            feasible=arg(FEASIBLE, bad.mask, called="prior"),
            regulariser=arg("l2", bad.name),
            initial=arg(mdp.initial, bad.distribution, None_="as the transitions show"),
        ),
        "rlfd_gym.simulate": at(
            rlfd_gym.simulate,
            {"set_state": "see tests/mdp/test_simulating.py"},
            env=arg(started, bad.environment),
            discount=arg(0.6, bad.number(0.0, 1.0, -0.5, 1 - 1e-13), None_="the environment's"),
            terminal=arg(
                np.array([1, 2]),
                bad.integers,
                None_="they are looked for",
                **dict.fromkeys((*LENGTHS, "empty", "an_empty_list"), "any states may be terminal"),
            ),
            deterministic=arg(False, bad.flag),
            steps=count,
            seed=arg(0, bad.integer(-1)),
        ),
        "examples.inventory": at(examples.inventory, alpha=weight, regulariser=arg("l1", bad.name)),
        "examples.gridworld": at(
            examples.gridworld,
            size=arg(4, bad.integer(0, 1), called="(height|width)", None_=DEFAULT),
            noise=share,
            alpha=weight,
            known=arg(0.5, bad.number(-0.1, 1.1), called="share"),
            seed=seed,
            regulariser=arg("l2", bad.name),
        ),
        "examples.gridworld_env": at(
            examples.gridworld_env, size=arg(4, bad.integer(0, 1), called="(height|width)", None_=DEFAULT)
        ),
        "rlfd_gym.guarantee": at(
            rlfd_gym.guarantee,
            mdp=mdp_,
            policy=arg(policy, bad.distribution),
            expert=arg(walks, bad.demonstrations, called="(expert|demonstrations)"),
            belief=arg(beliefs.Prices(basis, [0.1, 0.2], [0.3, 0.4]), bad.own),
            confidence=arg(0.9, bad.number(0.0, 1.0, -0.5)),
            seed=seed,
            n_resamples=arg(3, bad.integer(0, -1)),
            cost=arg([0.2, 0.3], bad.numbers, called="(prices|cost)", None_="the best answer"),
        ),
        # --- solvers
        "rlfd_gym.uncertainty": at(
            rlfd_gym.uncertainty,
            source=arg(problem, bad.own),
            demonstrations=arg(walks, bad.demonstrations),
            estimator=arg("policy", bad.name, None_=DEFAULT),
            confidence=arg(0.9, bad.number(0.0, 1.0, -0.5)),
            n_resamples=arg(2, bad.integer(0, -1)),
            seed=seed,
            n_jobs=arg(1, bad.integer(0), the_largest_int="as many as there are"),
            progress_bar=arg(False, bad.flag),
        ),
        "rlfd_gym.solve_exact": at(
            rlfd_gym.solve_exact,
            problem=arg(problem, bad.own),
            method=arg("auto", bad.name),
            time_limit=arg(60.0, bad.number(-1.0), None_="no limit"),
        ),
        "rlfd_gym.solve_smd": at(
            rlfd_gym.solve_smd,
            {"callback": "any function", "progress_bar": "see `disable` of tqdm"},
            problem=arg(problem, bad.own),
            n_iterations=arg(5, bad.integer(0, -1), None_="as many as the gap takes"),
            variant=arg("proximal", bad.name),
            gap=arg(None, bad.number(0.0, -1.0), None_="n_iterations says it"),
            repair=arg(True, bad.flag, None_=DEFAULT),
            step_size=arg(0.01, step_size, None_="chosen by the gap"),
            epsilon=arg(None, bad.number(0.0, -1.0), None_="n_iterations says it"),
            n_runs=arg(1, bad.integer(0, -1)),
            n_jobs=arg(1, bad.integer(0), the_largest_int="at most one for each run"),
            seed=seed,
            record_every=arg(2, bad.integer(0, -1), None_="no records", the_largest_int="the end comes first"),
            bound=bound,
            initial=arg(None, bad.own, None_="from the start"),
            callback_every=arg(2, bad.integer(0, -1), None_="at the end", the_largest_int="the end comes first"),
        ),
        "rlfd_gym.solve_sampled": at(
            rlfd_gym.solve_sampled,
            {"callback": "any function"},
            problem=arg(drawn, bad.own),
            gap=arg(1.0, bad.number(-1.0), None_="no gap is asked for"),
            calls=arg(200, bad.integer(0, 19, -1), None_=DEFAULT),
            confidence=arg(0.9, bad.number(0.0, 1.0, -0.5)),
            seed=seed,
            relative=arg(0.5, bad.number(-0.1, 1.1), None_="no share is asked for"),
            method=arg("model", bad.name),
            batch=arg(100, bad.integer(0, -1)),
        ),
        "rlfd_gym.solve_reweighted": at(
            rlfd_gym.solve_reweighted,
            problem=arg(sparse, bad.own),
            n_rounds=arg(2, bad.integer(0, -1)),
            delta=arg(0.1, bad.number(0.0, -1.0)),
        ),
        "rlfd_gym.share_at_prior": at(rlfd_gym.share_at_prior, problem=arg(problem, bad.own), cost=pairs),
        "rlfd_gym.pinning_alpha": at(rlfd_gym.pinning_alpha, problem=arg(problem, bad.own)),
        "rlfd_gym.project_prior": at(
            rlfd_gym.project_prior, {}, "NaN for a constant prior",
            mdp=mdp_, expert=arg(plan.occupancy, bad.distribution), prior=pairs,
            method=arg("matrix-free", bad.name)
        ),
        "rlfd_gym.solve_experts": at(
            lambda mdp, experts, expert, budget, prior: rlfd_gym.solve_experts(
                mdp, [*experts, (expert, budget)] if isinstance(experts, list) else experts, prior
            ),
            {}, "an infinite α if the prior fits all experts",
            mdp=mdp_, experts=arg([(occupancy, 0.05)], bad.cells),
            expert=arg(plan.occupancy, bad.distribution, called="experts"),
            budget=arg(0.1, bad.number(-0.1), called="experts"), prior=pairs
        ),
        # --- alpha
        "rlfd_gym.alpha_path": at(
            rlfd_gym.alpha_path,
            problem=arg(problem, bad.own),
            alphas=Argument(np.array([0.1, 1.0]), lambda v: bad.numbers(v) | {"zero": [0.0, 1.0], "negative": [-1.0]},
                            {"None": "the ends are found", "a number": "one point"} | {
                                label: "any number of points, in any order"
                                for label in ("one too few", "one too many", "twice", "two axes more")}),
            n_points=arg(3, bad.integer(0, 1)),
            n_jobs=arg(1, bad.integer(0), the_largest_int="at most one for each point"),
        ),
        "alpha_path, by number": at(
            lambda n_points: rlfd_gym.alpha_path(problem, n_points=n_points), n_points=arg(2, bad.integer(0, 1))
        ),
        "rlfd_gym.select_alpha": at(
            rlfd_gym.select_alpha,
            path=arg(path, bad.own),
            rule=arg("regret-budget", bad.name),
            budget=share,
            noise=arg(None, bad.number(-0.1), None_="only the rule discrepancy needs it"),
            demonstrations=arg(walks, bad.demonstrations, None_="only two rules need them"),
        ),
        "select_alpha, by noise": at(
            lambda noise: rlfd_gym.select_alpha(path, "discrepancy", noise=noise), noise=arg(0.1, bad.number(-0.1))
        ),
        "alpha.parse_rule": at(alpha.parse_rule, rule=arg("discrepancy:0.2", rule, called="(noise|budget)")),
        # --- envs
        "envs.InventoryEnv": at(
            InventoryEnv,
            max_inventory=arg(3, bad.integer(0, -1)),
            demand_mean=arg(2.0, bad.number(-1.0)),
            order_cost=arg(3.0, bad.number()),
            holding_cost=arg(0.5, bad.number()),
            sell_price=arg(15.0, bad.number()),
            discount=discount,
            cost_scale=arg((-100.0, 0.0), bad.numbers, called="low", None_="the range of the raw cost"),
            expected_sales=arg("exact", bad.name),
            limit_orders=arg(True, bad.flag),
            render_mode=arg(None, bad.name, None_="no pictures"),
        ),
        "InventoryEnv.price_ranges": at(
            shop.price_ranges,
            order=arg((2.0, 3.0), price_range),
            holding=arg((0.5, 1.0), price_range),
            sell=arg((4.0, 6.0), price_range),
        ),
        "WindyGridworldEnv.price_ranges": at(
            grid.price_ranges,
            obstacle=arg((0.5, 1.0), price_range),
            goal=arg((-1.0, -0.5), price_range),
            step=arg((0.0, 0.1), price_range),
        ),
        "InventoryEnv.cost_for": at(
            shop.cost_for,
            order_cost=arg(3.0, bad.number()),
            holding_cost=arg(0.5, bad.number()),
            sell_price=arg(15.0, bad.number()),
        ),
        "InventoryEnv.sample_next": at(
            shop.sample_next,
            states=arg(states % 2, bad.integers, called="states, actions", **SCALARS),
            actions=arg(actions, bad.integers, called="states, actions", **SCALARS),
            rng=generator,
        ),
        "envs.WindyGridworldEnv": at(
            WindyGridworldEnv,
            {"ascii_map": "see ascii_layout", "layout_seed": "below"},
            height=arg(4, bad.integer(0, -1), None_=DEFAULT),
            width=arg(3, bad.integer(0, -1), None_=DEFAULT),
            obstacles=arg([(0, 0)], bad.cells, None_="no obstacles"),
            goals=arg([(3, 2)], bad.cells, None_="no goals"),
            wind=share,
            discount=discount,
            render_mode=arg(None, bad.name, None_="no pictures"),
        ),
        "WindyGridworldEnv, drawn": at(
            lambda layout_seed: WindyGridworldEnv(4, 3, layout_seed=layout_seed),
            layout_seed=arg(0, bad.seed, None_="the paper's layout"),
        ),
        "WindyGridworldEnv.state_of": at(
            grid.state_of,
            row=arg(1, bad.integer(-1, 4), called="row, column"),
            column=arg(1, bad.integer(-1, 3), called="row, column"),
        ),
        "WindyGridworldEnv.cell_of": at(grid.cell_of, state=arg(1, bad.integer(-1, 12))),
        "WindyGridworldEnv.partial_prior": at(grid.partial_prior, share=share, seed=seed),
        "WindyGridworldEnv.sample_next": at(grid.sample_next, **indices | {"rng": generator}),
        "TabularEnv.reset": at(grid.reset, {"seed": "checked by Gymnasium"}, options=arg({}, options, None_="none")),
        "TabularEnv.step": at(started.step, action=arg(1, bad.integer(-1, 4))),
        "envs.ascii_layout": at(ascii_layout, ascii_map=arg("G..", ascii_map)),
        "envs.paper_layout": at(paper_layout, height=arg(4, bad.integer(0, 2)), width=arg(4, bad.integer(0, 1))),
        "envs.random_layout": at(
            random_layout, height=count, width=count, seed=seed, goal_share=share, obstacle_share=share
        ),
        # --- baselines
        "baselines.bayesian_irl": at(
            baselines.bayesian_irl,
            {"alpha": "tried below"},
            mdp=mdp_,
            expert=expert_,
            prior=pairs,
            rationality=arg(5.0, bad.number(0.0, -1.0), None_="by the evidence"),
            prior_spread=arg(0.2, bad.number(0.0, -1.0), None_="by the evidence"),
            n_decisions=arg(10.0, bad.number(0.0, -1.0)),
        ),
        "baselines.bayesian_irl, by alpha": at(
            lambda alpha: baselines.bayesian_irl(mdp, occupancy, prior, rationality=5.0, alpha=alpha, n_decisions=10.0),
            alpha=arg(0.1, bad.number(0.0, -1.0), None_="by the evidence"),
        ),
        "Posterior.bands": at(posterior.bands, level=arg(0.9, bad.number(0.0, 1.0, -0.1, 1.1))),
        "Posterior.samples": at(posterior.samples, n=count, seed=seed, burn_in=count),
        "baselines.behavioural_cloning": at(baselines.behavioural_cloning, mdp=mdp_, expert=expert_),
        "baselines.lp_irl": at(
            baselines.lp_irl, {}, "it has no bounds", mdp=mdp_, expert=expert_, penalty=arg(0.1, bad.number(-0.1))
        ),
        "baselines.lpal": at(baselines.lpal, mdp=mdp_, expert=expert_, basis=basis_),
        "baselines.max_margin": at(
            baselines.max_margin,
            mdp=mdp_,
            expert=expert_,
            basis=arg(basis, bad.numbers, called="mean"),
            regularisation=arg(0.1, bad.number(0.0, -0.1)),
            loss=arg(cost, bad.numbers, None_="the default loss"),
            mean=arg([0.0, 0.1], bad.numbers, None_="zero"),
            prior=arg(prior, bad.numbers, None_="zero"),
        ),
        "baselines.mce_irl": at(
            baselines.mce_irl,
            mdp=mdp_,
            expert=expert_,
            basis=arg(basis, bad.numbers, None_="a cost for each state"),
            n_iterations=count,
            tolerance=arg(0.1, bad.number(-1.0)),
            regularisation=arg(1e-3, bad.number(0.0, -1.0)),
        ),
        "baselines.majority": at(baselines.majority, mdp=mdp_, expert=expert_),
        "baselines.mixture": at(
            baselines.mixture,
            {},
            "it has no bounds",
            mdp=mdp_,
            expert=expert_,
            prior=arg(prior, bad.numbers),
            share=share,
        ),
        "baselines.spibb": at(
            baselines.spibb,
            mdp=mdp_,
            expert=expert_,
            prior=arg(prior, bad.numbers),
            min_count=arg(2.0, bad.number(-0.1)),
            n_decisions=arg(10.0, bad.number(0.0, -1.0), None_="the occupancy is exact"),
        ),
        "baselines.drex": at(
            baselines.drex,
            mdp=mdp_,
            expert=expert_,
            prior=arg(prior, bad.numbers, None_="zero"),
            alpha=weight,
            noise_levels=arg(np.array([0.0, 0.5, 1.0]), bad.numbers, **dict.fromkeys(LENGTHS, "any number of levels")),
        ),
        "baselines.broil": at(
            baselines.broil,
            {"costs": "tried below"},
            mdp=mdp_,
            expert=expert_,
            prior=arg(prior, bad.numbers),
            weights=arg(np.full(5, 0.2), bad.distribution, None_="equally likely"),
            trade_off=share,
            tail=arg(0.5, bad.number(-0.1, 1.0, 1.1)),
            prior_spread=weight,
            n_samples=arg(5, bad.integer(0, -1), called="(n_samples|weights)"),
            seed=seed,
        ),
        "baselines.broil, samples": at(
            baselines.broil,
            dict.fromkeys(("prior", "weights", "trade_off", "tail", "prior_spread", "n_samples", "seed"), "above"),
            mdp=mdp_,
            expert=expert_,
            costs=arg(np.array([cost, prior]), bad.numbers, **dict.fromkeys(LENGTHS, "any number of samples")),
        ),
        "baselines.mwal": at(baselines.mwal, mdp=mdp_, expert=expert_, basis=basis_, n_iterations=count),
        "baselines.projection": at(
            baselines.projection, mdp=mdp_, expert=expert_, basis=basis_, epsilon=weight, n_iterations=count
        ),
        "baselines.solve_smd_hull": at(
            lambda problem, basis, n_iterations: baselines.solve_smd_hull(problem, basis, n_iterations),
            problem=arg(problem, bad.own),
            basis=basis_,
            n_iterations=arg(5, bad.integer(0, -1), None_="as many as the gap takes"),
        ),
        # --- compare, report
        "compare.Design": at(compare.Design, **design()),
        "Design.of": at(lambda **chosen: compare.Design.of(**chosen), **design(registered=True)),
        "report.half_width": at(
            report.half_width,
            may_be_nan="a single value has no interval",
            std=Argument(np.array([0.5, 0.25]), bad.numbers, SHAPE | NOTHING),
            n=arg(3, bad.integer(-1), the_largest_int="a formula"),
            ddof=arg(1, bad.integer(-1, 2)),
        ),
        "report.mean_and_margin": at(
            report.mean_and_margin,
            values=Argument(cost, bad.numbers, {label: "any number of values" for label in
                            ("one too few", "one too many", "twice")}),
        ),
        "plots.draw_cost": at(
            lambda grid, mdp, cost, action, limit: plots.draw_cost(axes(), grid, mdp, cost, action, limit) and None,
            grid=arg(plots.Grid.of_env(grid), bad.own),
            mdp=arg(grid.mdp, bad.own),
            cost=arg(grid.cost, bad.numbers),
            action=arg(1, bad.integer(-1, 4), None_="the mean over actions"),
            limit=arg(1.0, bad.number(0.0, -1.0)),
        ),
        "plots.draw_policy": at(
            lambda grid, mdp, policy: plots.draw_policy(axes(), grid, mdp, policy),
            grid=arg(plots.Grid.of_env(grid), bad.own),
            mdp=arg(grid.mdp, bad.own),
            policy=arg(grid.mdp.uniform_policy(), bad.numbers),
        ),
        "plots.draw_orders": at(
            lambda mdp, policy: plots.draw_orders(axes(), mdp, {"policy": policy}),
            mdp=arg(shop.mdp, bad.own),
            policy=arg(shop.mdp.uniform_policy(), bad.numbers),
        ),
        "plots.plot_path": at(
            lambda path: plots.plot_path(path) and None, path=arg(path, bad.own)
        ),
        "plots.save": at(
            lambda path: plots.save(plots.new_figure()[0], path) and None, path=arg(folder / "x.png", bad.path)
        ),
    }  # fmt: skip


def price_range(_: Any) -> dict[str, Any]:
    """What is bad about a range (low, high), or a price."""
    ends = {
        "reversed": (2.0, 1.0),
        "one end": (1.0,),
        "three": (1.0, 2.0, 3.0),
        "NaN": (np.nan, 1.0),
        "inf": (1.0, np.inf),
    }
    return bad.things() | ends | {"texts": ("1", "2"), "a bool": True, "an array": np.ones((2, 2))}


ANOTHER_LENGTH = {
    label: "a belief learns its length from the environment, in `over`"
    for label in ("one_too_few", "one_too_many", "twice")
}


def axes():
    return plots.new_figure()[1][0, 0]


SCALARS = {"two_axes_more": "arrays are broadcast"}


def columns(valid):
    """What is bad about a column of a log, whose bad rows are only reported, and which may hold any labels."""
    kept = (
        "a number, a set, a generator, masked, shuffled index, ragged, nested ragged, one too few, twice, two axes more"
    )
    return {k: x for k, x in bad.arrays(valid).items() if k in kept.split(", ")}


def column(_):
    return {k: x for k, x in bad.name(None).items() if k not in ("another name", "no name")}


def rule(_):
    return bad.name(None) | {
        f"discrepancy:{x}": f"discrepancy:{x}" for x in ("", "nan", "inf", "-1", "3", "x", "1e308")
    }


def step_size(_):
    return bad.number(-1.0)(None) | {
        "one": (0.1,),
        "four": (0.1, 0.1, 0.1, 0.1),
        "texts": ("0.1", "0.1"),
        "nested": ([0.1],),
    }


def ascii_map(_):
    return {k: x for k, x in bad.things().items()} | {"empty": "", "blank": "\n\n", "ragged": "..\n.", "unknown": ".x."}


def options(_):
    return {k: x for k, x in bad.things().items() if k != "a dict"} | {
        f"the state {x!r}": {"state": x} for x in (-1, 10**6, 0.5, "0", np.nan, True, [0], 10**30)
    }


def design(registered=False):
    def names(_):
        return bad.name(None) | {"a list of numbers": [1], "an unknown name": ["abc"], "an empty list": []}

    def levels(_):
        return bad.integer()(None) | {f"[{x!r}]": [x] for x in (0, -1, 0.5, "ten", None, np.nan, True, 10**30)}

    def weights(_):
        return {k: x for k, x in bad.number()(None).items() if k != "a list"} | {
            f"[{x!r}]": [x] for x in (-0.1, "0.1", None, np.nan, np.inf, True, 1e308)
        }

    stored = "a stored design may name what is not registered here"
    unknown = {} if registered else {"an_unknown_name": stored, "a_list_of_names": stored}
    return {
        "tasks": arg(("inventory",), names, **unknown),
        "methods": arg(("cloning",), names, **unknown),
        "seeds": arg(1, bad.integer(0, -1)),
        "demonstrations": arg((1, "exact"), levels),
        "alphas": arg((0.1,), weights),
        "iterations": arg(1, bad.integer(0, -1)),
        "runs": arg(1, bad.integer(0, -1)),
        "readings": arg(("own",), names),
    }


def calls_with_imitation() -> dict[str, Call]:
    """Return the calls that need imitation; a bad value must be refused before anything is trained."""
    from rlfd_gym.trainer import TablePolicy, TableRewardNet, quiet_logger

    shop = InventoryEnv(3, 2.0)
    mdp, cost, logger = shop.mdp, shop.cost, quiet_logger()
    occupancy = mdp.occupancy_of(mdp.uniform_policy())
    common = {
        "mdp": arg(mdp, bad.own),
        "expert": arg(occupancy, bad.occupancy_or_demonstrations, called="demonstrations"),
    }
    count, seed = arg(1, bad.integer(0, -1)), arg(0, bad.seed)
    spaces = {"observation_space": "Gymnasium's", "action_space": "Gymnasium's"}

    def table_policy(probabilities, seed):
        return TablePolicy(shop.observation_space, shop.action_space, probabilities, seed) and None

    def table_net(table):
        return TableRewardNet(shop.observation_space, shop.action_space, table) and None

    def trainer(**arguments):
        rlfd_gym.RLfDTrainer(**arguments, custom_logger=logger)

    def prior(valid):  # a function is called, and its errors are its own
        return {k: x for k, x in bad.numbers(valid).items() if k not in ("a class", "a function")}

    return {
        "baselines.cloning_network": Call(
            baselines.cloning_network, common | {"n_batches": count, "n_samples": count, "seed": seed}, trains=True
        ),
        "baselines.gail": Call(
            baselines.gail,
            common | {"n_timesteps": arg(2048, bad.integer(0, 1)), "n_samples": count, "seed": seed},
            trains=True,
        ),
        "trainer.TablePolicy": Call(
            table_policy,
            {"probabilities": arg(np.full((4, 4), 0.25), bad.distribution, None_="uniform"), "seed": seed},
            spaces,
        ),
        "trainer.TableRewardNet": Call(table_net, {"table": arg(np.zeros((4, 4)), bad.numbers, None_="zeros")}, spaces),
        "rlfd_gym.RLfDTrainer": Call(
            trainer,
            {
                "demonstrations": arg(
                    rlfd_gym.demonstrate(mdp, mdp.uniform_policy(), 3, 120, 0), bad.demonstrations, None_=LATER
                ),
                "env": arg(shop, bad.environment),
                "rng": arg(0, bad.seed, None_="0"),
                "prior": arg(cost, prior),
                "alpha": arg(0.1, bad.number(-0.1), None_=DEFAULT, called="rule"),
                "regulariser": arg("l2", bad.name),
                "discount": arg(0.9, bad.number(0.0, 1.0), None_="the environment's"),
                "solver": arg(
                    "exact", bad.name, a_function="any function may solve", a_class="a class is called", None_=DEFAULT
                ),
                "n_runs": count,
                "n_jobs": arg(1, bad.integer(0), the_largest_int="at most one for each run"),
                "policy_kind": arg("occupancy", bad.name),
                "discounting": arg("none", bad.name),
                "estimator": arg("policy", bad.name, None_=DEFAULT),
                "allow_variable_horizon": arg(False, bad.flag),
            },
        ),
    }
