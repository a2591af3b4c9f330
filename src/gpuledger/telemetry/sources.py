"""The former home of `telemetry.formats`, for plugins written for it; it goes with the next minor release."""

import warnings

from gpuledger.telemetry.formats import FORMATS as SOURCES
from gpuledger.telemetry.formats import Fit, Head, Opened

__all__ = ["SOURCES", "Fit", "Head", "Opened"]
warnings.warn("gpuledger.telemetry.sources is now gpuledger.telemetry.formats", DeprecationWarning, stacklevel=2)
