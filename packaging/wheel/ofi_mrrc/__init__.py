# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""libfabric's provider ofi_mrrc, a cache of registered memory, as files."""
