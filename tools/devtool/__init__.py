# SPDX-License-Identifier: Apache-2.0
"""The code of `./dev`: standard library only, because it runs before anything is installed."""
