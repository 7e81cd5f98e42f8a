# SPDX-License-Identifier: Apache-2.0
"""What stands behind `./dev`: standard library only, because it runs before anything is installed."""
