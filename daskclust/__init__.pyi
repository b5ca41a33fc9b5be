__version__: str

from . import accessor as accessor
from . import app as app
from . import core as core
from . import datasets as datasets
from . import io as io
from . import metrics as metrics
from . import neighbors as neighbors
from . import plot as plot
from . import properties as properties
from . import workers as workers
from .clue.estimator import CLUE as CLUE
from .clue.kernels.density import ExponentialKernel as ExponentialKernel
from .clue.kernels.density import GaussianKernel as GaussianKernel
from .clue3d.estimator import CLUE3D as CLUE3D
from .dbscan.estimator import DBSCAN as DBSCAN
from .dbscan.estimator import FriendsOfFriends as FriendsOfFriends
from .dbscan.galaxies import galaxy_groups as galaxy_groups
from .events.estimator import EventBuilder as EventBuilder
from .hca.estimator import MahalanobisHCA as MahalanobisHCA
from .hdbscan.emst import EMST as EMST
from .hdbscan.estimator import HDBSCAN as HDBSCAN
from .readout.stream import EventStream as EventStream
