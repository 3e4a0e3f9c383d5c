"""Looking at what happens: retraces."""

from haliax._src.retraces import RetraceWarning as RetraceWarning, warn_on_retrace as warn_on_retrace
