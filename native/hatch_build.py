"""Has the C sources of this room compiled when the package is built or installed, if there is a compiler."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileNative(BuildHookInterface):  # type: ignore[type-arg]
    """Hatchling calls it before it collects the files."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; without a compiler the package is complete in Python."""
        if self.target_name != "wheel":
            return
        module = runpy.run_path(str(Path(self.root) / "native" / "build.py"))
        why = module["build"]()
        if why is not None:
            self.app.display_warning(f"ottla.native is not compiled, Python serves in its place: {why}")
            return
        compiled = module["target"]()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"][str(compiled)] = f"ottla/native/{compiled.name}"
