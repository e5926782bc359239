import os
from typing import List, Optional, Tuple, TypedDict, Union

import numpy as np
from numpy.typing import NDArray

_Settings = Tuple[Optional[str], Optional[str], Union[str, os.PathLike, None], int, Optional[str]]

__version__: str

_MaybeArray = Optional[NDArray[np.uint32]]
_State = Tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint32], int, bool, str]

class InternalError(RuntimeError): ...

class Device(TypedDict):
    name: str
    platform: str
    driver: str
    compute_units: int
    unusable: Optional[str]

class Core:
    @staticmethod
    def from_rows(offsets: NDArray[np.integer], targets: NDArray[np.integer], directed: bool, settings: _Settings, timeout: Optional[float]) -> "Core": ...
    @staticmethod
    def from_pairs(
        pairs: NDArray[np.uint32], vertices: int, directed: bool, settings: _Settings, timeout: Optional[float]
    ) -> "Core": ...
    @staticmethod
    def from_file(path: Union[str, os.PathLike], format: Optional[str], directed: bool, settings: _Settings, timeout: Optional[float]) -> "Core": ...
    @staticmethod
    def from_state(
        offsets: NDArray[np.int64],
        targets: NDArray[np.int32],
        degrees: NDArray[np.uint32],
        edges: int,
        directed: bool,
        order: str,
        settings: _Settings,
    ) -> "Core": ...
    def state(self) -> _State: ...
    @property
    def counts(self) -> Tuple[int, int, bool]: ...
    def degrees(self, begin: int, end: int) -> NDArray[np.uint32]: ...
    def bfs(
        self,
        sources: Union[int, NDArray[np.uint32]],
        with_parents: bool,
        with_levels: bool,
        with_sources: bool,
        depth: Optional[int],
        target: Optional[int],
        timeout: Optional[float],
    ) -> Tuple[_MaybeArray, _MaybeArray, _MaybeArray, int, float, str, Optional[str], bytes]: ...
    def components(self, timeout: Optional[float]) -> Tuple[int, NDArray[np.uint32]]: ...
    def about(self) -> Tuple[str, List[str]]: ...
    def reached(self, found: NDArray[np.uint32]) -> Tuple[int, int]: ...
    def bfs_many(
        self, roots: NDArray[np.uint32], bytes: bool, with_parents: bool, timeout: Optional[float]
    ) -> Tuple[NDArray[np.unsignedinteger], Optional[NDArray[np.uint32]]]: ...

class Sensors:
    def __init__(self, board: Optional[str] = None, timeout: Optional[float] = None) -> None: ...
    @property
    def scope(self) -> str: ...
    def begin(self, timeout: Optional[float]) -> None: ...
    def end(self, timeout: Optional[float]) -> Tuple[Optional[float], float, Optional[str]]: ...

def breadth_first_order(
    offsets: object, targets: object, root: int, directed: bool, timeout: Optional[float]
) -> Tuple[NDArray[np.int32], NDArray[np.int32]]: ...
def devices(timeout: Optional[float] = None) -> List[Device]: ...

class GridCore:
    def __init__(self, cells: NDArray[np.uint8], connectivity: int, cut_corners: bool, threads: int, timeout: Optional[float]) -> None: ...
    @property
    def shape(self) -> Tuple[int, int]: ...
    def assign(self, cells: NDArray[np.uint8]) -> None: ...
    def fill(self, rows: Tuple[int, int], columns: Tuple[int, int], free: bool) -> None: ...
    def free(self) -> NDArray[np.uint8]: ...
    def bfs(
        self,
        sources: NDArray[np.int64],
        with_steps: bool,
        with_sources: bool,
        target: Optional[Tuple[int, int]],
        depth: Optional[int],
        timeout: Optional[float],
    ) -> Tuple[
        NDArray[np.uint16],
        Optional[NDArray[np.uint32]],
        Optional[NDArray[np.uint8]],
        Optional[NDArray[np.uint32]],
        Tuple[int, int, float, str],
    ]: ...
