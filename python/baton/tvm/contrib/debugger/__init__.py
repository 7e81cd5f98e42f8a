# SPDX-License-Identifier: Apache-2.0
"""The graph executor with a look inside."""
