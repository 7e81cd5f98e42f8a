# SPDX-License-Identifier: Apache-2.0
"""Programs under the names of Relay's time: `python -m baton.exec.rpc_server`."""
