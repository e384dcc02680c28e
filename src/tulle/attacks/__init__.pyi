# Written by tools/index.py from the registrations in the source; not to be edited.
from tulle.attacks.edges import count_inference as count_inference
from tulle.attacks.edges import edge_inference as edge_inference
from tulle.attacks.intervals import mean_interval as mean_interval
from tulle.attacks.intervals import rate_interval as rate_interval
from tulle.attacks.limits import NO_LIMIT as NO_LIMIT
from tulle.attacks.limits import belief_limits as belief_limits
from tulle.attacks.limits import success_limit as success_limit
from tulle.attacks.membership import membership_inference as membership_inference
from tulle.attacks.model_inversion import confusion_matrix as confusion_matrix
from tulle.attacks.model_inversion import feature_inference as feature_inference
from tulle.attacks.report import AttackReport as AttackReport
from tulle.attacks.traits import identity_inference as identity_inference
from tulle.attacks.traits import new_trait_inference as new_trait_inference
from tulle.attacks.traits import trait_inference as trait_inference
