# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# For Spack 1.0 or newer. The project has no public address yet: run spack in the
# folder that has the release.
import os

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class OfiMrrc(AutotoolsPackage):
    """Provider of libfabric that caches the registrations of memory."""

    url = f"file://{os.getcwd()}/ofi_mrrc-0.1.1.tar.xz"
    manual_download = True

    license("BSD-2-Clause OR GPL-2.0-only")

    # with the sha256 that util/sh/release.sh prints
    version("0.1.1")

    variant("tools", default=True, description="Programs fi_mrrc_*")

    depends_on("c", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("libbsd")
    depends_on("libfabric@1.17:")
    depends_on("liburing@2.2:")
    depends_on("zydis@4:", when="target=x86_64:")
    depends_on("jansson", when="+tools")
    depends_on("libsodium", when="+tools")
    depends_on("xxhash@0.8:", when="+tools")
    depends_on("xz", when="+tools")

    def configure_args(self):
        return self.enable_or_disable("tools")

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        env.prepend_path("FI_PROVIDER_PATH", self.prefix.lib.libfabric)
