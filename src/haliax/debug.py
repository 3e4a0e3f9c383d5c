"""Looking at arrays, layouts, modules and retraces."""

from haliax._src.diagnose import (
    ModuleProblems as ModuleProblems,
    Problem as Problem,
    diagnose_common_issues as diagnose_common_issues,
)
from haliax._src.plot import plot_named_sharding as plot_named_sharding, plot_shardings as plot_shardings
from haliax._src.repr import describe_array as describe_array
from haliax._src.retraces import RetraceWarning as RetraceWarning, warn_on_retrace as warn_on_retrace
from haliax._src.visualize import (
    visualize_named_sharding as visualize_named_sharding,
    visualize_shardings as visualize_shardings,
)
