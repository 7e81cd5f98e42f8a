# SPDX-License-Identifier: Apache-2.0
"""The graph executor's form for CUDA's graphs."""
