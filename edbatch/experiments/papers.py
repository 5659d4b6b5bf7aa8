"""The papers whose tables and figures are measured anew, and the machines that their own numbers are from."""

from __future__ import annotations

from typing import NamedTuple


class Paper(NamedTuple):
    """A paper.

    Attributes:
        name: how it is called here.
        where: its authors, conference and year.
        hardware: what its numbers were measured on.
    """

    name: str
    where: str
    hardware: str


ED_BATCH = Paper(
    "ED-Batch", "Chen et al., ICML 2023", "Xeon E2590 with 28 cores and NVIDIA V100, CUDA 11.1; on DyNet of August 2022"
)
CAVS = Paper(
    "Cavs", "Xu et al., USENIX ATC 2018", "NVIDIA Titan X (GM200) and a CPU with 16 cores, CUDA 8; TensorFlow 1.2"
)
RECURSION = Paper(
    "Recursion",
    "Jeong et al., EuroSys 2018",
    "two Xeon E5-2695 with 18 cores each (PyTorch and folding: NVIDIA Titan X); TensorFlow 1.3",
)
SUAREZ_ZHU = Paper("Suarez & Zhu", "Suarez and Zhu, 2019", "NVIDIA GTX 1080 Ti; PyTorch of 2017")
