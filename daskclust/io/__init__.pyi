__all__ = [
    "CALORIMETER",
    "FIELDS",
    "PARTICLES",
    "TIMEPIX",
    "Calibration",
    "Field",
    "ParquetSink",
    "Variable",
    "WordReader",
    "arcsinh_transform",
    "calibrate",
    "compensate",
    "correct_timewalk",
    "follow",
    "linking_length",
    "open_fcs",
    "open_katherine",
    "open_particles",
    "open_t3pa",
    "open_tpx3",
    "open_tpx3_triggers",
    "read_calibration",
    "read_cells",
    "read_gmhc",
    "read_hits",
    "receive",
    "time_of_flight",
    "to_dataset",
    "to_device",
    "write_cells",
    "write_gmhc",
    "write_hits",
    "write_particles",
    "write_tpx3",
]

from daskclust.io.cytometry.files import open_fcs as open_fcs
from daskclust.io.cytometry.files import read_cells as read_cells
from daskclust.io.cytometry.gmhc import read_gmhc as read_gmhc
from daskclust.io.cytometry.gmhc import write_gmhc as write_gmhc
from daskclust.io.cytometry.transform import arcsinh_transform as arcsinh_transform
from daskclust.io.cytometry.transform import compensate as compensate
from daskclust.io.cytometry.write import write_cells as write_cells
from daskclust.io.devices import to_device as to_device
from daskclust.io.fields import CALORIMETER as CALORIMETER
from daskclust.io.fields import FIELDS as FIELDS
from daskclust.io.fields import PARTICLES as PARTICLES
from daskclust.io.fields import TIMEPIX as TIMEPIX
from daskclust.io.fields import Field as Field
from daskclust.io.fields import Variable as Variable
from daskclust.io.hits import read_hits as read_hits
from daskclust.io.hits import write_hits as write_hits
from daskclust.io.particles.files import linking_length as linking_length
from daskclust.io.particles.files import open_particles as open_particles
from daskclust.io.particles.files import write_particles as write_particles
from daskclust.io.schema import to_dataset as to_dataset
from daskclust.io.tables.parquet import ParquetSink as ParquetSink
from daskclust.io.timepix.calibration import Calibration as Calibration
from daskclust.io.timepix.calibration import calibrate as calibrate
from daskclust.io.timepix.calibration import read_calibration as read_calibration
from daskclust.io.timepix.katherine import open_katherine as open_katherine
from daskclust.io.timepix.readout import WordReader as WordReader
from daskclust.io.timepix.readout import follow as follow
from daskclust.io.timepix.readout import receive as receive
from daskclust.io.timepix.t3pa import open_t3pa as open_t3pa
from daskclust.io.timepix.timewalk import correct_timewalk as correct_timewalk
from daskclust.io.timepix.tpx3.files import open_tpx3 as open_tpx3
from daskclust.io.timepix.tpx3.files import open_tpx3_triggers as open_tpx3_triggers
from daskclust.io.timepix.tpx3.files import time_of_flight as time_of_flight
from daskclust.io.timepix.tpx3.files import write_tpx3 as write_tpx3
