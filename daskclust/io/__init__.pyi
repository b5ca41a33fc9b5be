__all__ = [
    "CALORIMETER",
    "FIELDS",
    "PARTICLES",
    "TIMEPIX",
    "Calibration",
    "CalibrationTable",
    "Field",
    "KatherineReader",
    "PartsSink",
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
    "open_pixet",
    "open_t3pa",
    "open_tpx3",
    "open_tpx3_triggers",
    "read_calibration",
    "read_cells",
    "read_gmhc",
    "read_hits",
    "receive",
    "time_of_flight",
    "to_anndata",
    "to_dataset",
    "to_device",
    "write_cells",
    "write_clog",
    "write_gatingml",
    "write_group_ids",
    "write_groups",
    "write_hits",
    "write_particles",
    "write_tpx3",
]

from .cytometry.annotated import to_anndata as to_anndata
from .cytometry.files import open_fcs as open_fcs
from .cytometry.files import read_cells as read_cells
from .cytometry.gating import write_gatingml as write_gatingml
from .cytometry.gmhc import read_gmhc as read_gmhc
from .cytometry.transform import arcsinh_transform as arcsinh_transform
from .cytometry.transform import compensate as compensate
from .cytometry.write import write_cells as write_cells
from .devices import to_device as to_device
from .fields import CALORIMETER as CALORIMETER
from .fields import FIELDS as FIELDS
from .fields import PARTICLES as PARTICLES
from .fields import TIMEPIX as TIMEPIX
from .fields import Field as Field
from .fields import Variable as Variable
from .hits import read_hits as read_hits
from .hits import write_hits as write_hits
from .outputs.growing import PartsSink as PartsSink
from .particles.files import linking_length as linking_length
from .particles.files import open_particles as open_particles
from .particles.files import write_particles as write_particles
from .particles.groups import write_group_ids as write_group_ids
from .particles.groups import write_groups as write_groups
from .schema import to_dataset as to_dataset
from .timepix.calibration import Calibration as Calibration
from .timepix.calibration import CalibrationTable as CalibrationTable
from .timepix.calibration import calibrate as calibrate
from .timepix.calibration import read_calibration as read_calibration
from .timepix.katherine import KatherineReader as KatherineReader
from .timepix.katherine import open_katherine as open_katherine
from .timepix.pixet import open_pixet as open_pixet
from .timepix.pixet import write_clog as write_clog
from .timepix.sources import follow as follow
from .timepix.sources import receive as receive
from .timepix.t3pa import open_t3pa as open_t3pa
from .timepix.timewalk import correct_timewalk as correct_timewalk
from .timepix.tpx3.files import open_tpx3 as open_tpx3
from .timepix.tpx3.stream import WordReader as WordReader
from .timepix.tpx3.triggers import open_tpx3_triggers as open_tpx3_triggers
from .timepix.tpx3.triggers import time_of_flight as time_of_flight
from .timepix.tpx3.write import write_tpx3 as write_tpx3
