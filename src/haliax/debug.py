"""Looking at arrays, layouts, modules and retraces."""

from haliax._src.repr import describe_array as describe_array
from haliax._src.retraces import RetraceWarning as RetraceWarning, warn_on_retrace as warn_on_retrace
