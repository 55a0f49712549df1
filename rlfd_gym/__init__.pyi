"""The public names of the package, each said once: `lazy_loader` and type checkers read them here."""

from ._errors import SolverError as SolverError
from ._warnings import collected_warnings as collected_warnings
from .alpha.path import alpha_path as alpha_path
from .alpha.rules import select_alpha as select_alpha
from .decision import Decision as Decision
from .decision import decide as decide
from .decision import price_belief as price_belief
from .experts.demonstrations import occupancy_from_demonstrations as occupancy_from_demonstrations
from .experts.logs import Dialect as Dialect
from .experts.logs import Log as Log
from .experts.logs import read_log as read_log
from .experts.made_up import demonstrate as demonstrate
from .experts.made_up import noisy_expert as noisy_expert
from .experts.noise import occupancy_noise as occupancy_noise
from .experts.sampled import SampledExpert as SampledExpert
from .experts.scale import CostScale as CostScale
from .mdp.adapters import cost_of_env as cost_of_env
from .mdp.forward import Plan as Plan
from .mdp.simulating import simulate as simulate
from .mdp.simulator import Simulator as Simulator
from .mdp.tables import TabularMDP as TabularMDP
from .problem.black_box import BlackBoxProblem as BlackBoxProblem
from .problem.guarantee import Guarantee as Guarantee
from .problem.guarantee import guarantee as guarantee
from .problem.problem import RLfDProblem as RLfDProblem
from .problem.solution import Apprentice as Apprentice
from .problem.solution import History as History
from .problem.solution import Solution as Solution
from .registration import register_envs as register_envs
from .report import plots as plots
from .solvers.exact import solve_exact as solve_exact
from .solvers.experts import solve_experts as solve_experts
from .solvers.projection import project_prior as project_prior
from .solvers.reweighted import pinning_alpha as pinning_alpha
from .solvers.reweighted import share_at_prior as share_at_prior
from .solvers.reweighted import solve_reweighted as solve_reweighted
from .solvers.sampled.solve import solve_sampled as solve_sampled
from .solvers.smd.solve import solve_smd as solve_smd
from .solvers.uncertainty import uncertainty as uncertainty
from .trainer.trainer import RLfDTrainer as RLfDTrainer

__version__: str

def require_imitation(name: str) -> None: ...
