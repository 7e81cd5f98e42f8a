# SPDX-License-Identifier: Apache-2.0
"""The pipeline executor, which is not there: programs ask first."""

from ..error import UnsupportedError


def pipeline_executor_enabled():
    """Whether there is a pipeline executor: no."""
    return False


def _absent(*args, **kwargs):
    raise UnsupportedError("the pipeline executor is not there; build each part by relay.build and run the parts from threads of the program")


build = PipelineModule = PipelineConfig = PipelineExecutorFactoryModule = _absent

__all__ = ["PipelineConfig", "PipelineExecutorFactoryModule", "PipelineModule", "build", "pipeline_executor_enabled"]
