"""A pytest plugin for checkouts that were not built: it has the module that a build writes."""

import os
import sys
from types import ModuleType

_module = ModuleType(os.environ["CHECKOUT_VERSION_MODULE"])
vars(_module).update(
    dict.fromkeys(("version", "__version__"), "0"),
    __version_tuple__=(0,),
    __commit_id__=None,
)
sys.modules.setdefault(_module.__name__, _module)
