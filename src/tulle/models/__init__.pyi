# Written by tools/index.py from the registrations in the source; not to be edited.
from tulle.models.data import Table as Table
from tulle.models.estimators import LinearRegression as LinearRegression
from tulle.models.estimators import LogisticRegression as LogisticRegression
from tulle.models.interval import noise_interval as noise_interval
from tulle.models.model import Model as Model
from tulle.models.queries import linear as linear
from tulle.models.queries import logistic as logistic
