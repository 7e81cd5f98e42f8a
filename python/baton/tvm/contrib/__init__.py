# SPDX-License-Identifier: Apache-2.0
"""Modules of `tvm.contrib`: the graph executor's interfaces, processes, files and sparse matrices as programs for Relay use them."""
