"""All models of synthetic graphs and joint degrees; importing this registers them."""

from tulle.graphs.synthesis.auto import Auto
from tulle.graphs.synthesis.clustering import TwoFiveK
from tulle.graphs.synthesis.communities import Communities
from tulle.graphs.synthesis.degrees import OneK
from tulle.graphs.synthesis.joint import TwoK
from tulle.graphs.synthesis.joint_mechanisms import JointLaplace, JointSmooth, JointSoft
from tulle.graphs.synthesis.kronecker import Kronecker
from tulle.graphs.synthesis.response import ResponseModel
from tulle.graphs.synthesis.topm import TopM

__all__ = [
    "Auto",
    "Communities",
    "JointLaplace",
    "JointSmooth",
    "JointSoft",
    "Kronecker",
    "OneK",
    "ResponseModel",
    "TopM",
    "TwoFiveK",
    "TwoK",
]
