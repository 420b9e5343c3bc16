"""The error function's kin: erfcx, Phi, and the inverses of erf and of Phi.

erfcx(x) = exp(x^2) erfc(x)         Phi(x) = erfc(-x / sqrt(2)) / 2
erf(erfinv(y)) = y                  Phi(ndtri(p)) = p
"""

from __future__ import annotations

import math

from nanoloom.linalg.builder.scalar import Scalar, constant, select
from nanoloom.linalg.special.polynomial import horner

ROOT_HALF, ROOT_TWO = math.sqrt(0.5), math.sqrt(2)
ROOT_HALF_LOW = float.fromhex("-0x1.bdd3413b26456p-55")  # what ROOT_HALF lacks
CENTRE = 3.75
# (1 + 2 x) erfcx(x) in (x - 3.75) / (x + 3.75) on x >= 0, error 2^-53.2:
ERFCX = (
    1.2375126308378275,
    -0.14024059858554702,
    0.003585415485479575,
    0.08227673849014977,
    -0.10880393014246645,
    0.09230432116025894,
    -0.05869339857631061,
    0.028362277420377335,
    -0.00974657968596217,
    0.001755625843431864,
    0.000293714390578856,
    -0.00029015404203352704,
    5.164649341002877e-05,
    2.2384138525656757e-05,
    -1.1437980374495534e-05,
    -9.733875167494142e-07,
    1.7419011945194367e-06,
    -5.741076073013916e-08,
    -2.4851108650210706e-07,
    2.3398534313040898e-08,
    3.195398612057818e-08,
    -3.798189797736207e-09,
    -2.618520156503145e-09,
    3.2052623379289157e-10,
)

# erfinv(y) / y for w = -log(1 - y^2): in w on 0 <= w <= 6.25, error 2^-54.0;
INV_NEAR = (
    1.6536545626831027,
    0.7504943200799635,
    -0.0589225671037876,
    -0.022604447453444733,
    0.0178083618187569,
    -0.004137314377547895,
    -0.0012716922769885114,
    0.0012324855702994214,
    -0.00026439358646646055,
    -0.0001168888508125076,
    9.336692787624058e-05,
    -1.5027665773117194e-05,
    -1.1255653983969421e-05,
    7.12993974314695e-06,
    -6.87655180725494e-07,
    -1.0591188098187532e-06,
    5.456420572209782e-07,
    -1.0412692841159635e-08,
    -1.0514990713371436e-07,
    3.931511157646558e-08,
    9.07207594789291e-09,
    -8.627191009014394e-09,
    -8.577966939639941e-11,
    7.801712199036253e-10,
)
# in sqrt(w) on 2.5 to 4, error 2^-54.5;
INV_MID = (
    3.0838856104922208,
    0.753944225770624,
    0.0030211394363747063,
    -0.0015825410894073097,
    0.0007883078513066945,
    -0.00040063569835358583,
    0.00016966502197543766,
    -4.7391827316182325e-05,
    2.405864805789804e-06,
    5.127316786334848e-06,
    -2.664793846715906e-06,
    5.264621626938461e-07,
    9.289338749101434e-08,
    -9.468946844911027e-08,
    2.63990323529153e-08,
    -3.6906087078089294e-10,
    -2.4605291139227303e-09,
    9.891297510532429e-10,
    -1.179100761769929e-10,
    -6.471554767207546e-11,
    2.4355543452655723e-11,
)
# on 4 to 6.5, error 2^-53.7;
INV_FAR = (
    5.102469766505421,
    1.2627439715993543,
    -0.0004286291993963737,
    -0.0002930585976318151,
    0.00013464044613478927,
    -4.2795204731041615e-05,
    1.189726676350743e-05,
    -3.086799399545122e-06,
    7.803867041965297e-07,
    -2.0976020997964968e-07,
    7.26243807960451e-08,
    -3.730325372812e-08,
    2.4196261759640532e-08,
    -1.5085329452566386e-08,
    7.808821367829328e-09,
    -3.915316278708613e-09,
    2.1325466107954736e-09,
    -5.623439737184413e-10,
    -2.4452506375365856e-10,
    1.4042029017111946e-10,
)
# on 6.5 to 27.3, where 1 - y^2 is the smallest f64 there is, error 2^-54.0:
INV_TAIL = (
    16.819823555746307,
    10.431203356263756,
    -0.013641571446709569,
    0.006120050610506469,
    -0.002718839447660892,
    0.00115881352550903,
    -0.0004501988396529976,
    0.00013897176455307793,
    -1.163097796033375e-05,
    -3.291744267684607e-05,
    4.220376938207986e-05,
    -3.809135882370453e-05,
    3.013981730948932e-05,
    -2.2137566082037855e-05,
    1.569258927733281e-05,
    -1.1370147329628369e-05,
    7.619296778015115e-06,
    -3.240370389514527e-06,
    2.228450436712191e-06,
    -5.692324864491388e-06,
    3.4668711401021244e-06,
    5.156909184902203e-06,
    -3.004882365694495e-06,
    -7.555829116293119e-06,
    4.472176974059809e-06,
    6.041456170147172e-06,
    -3.5634859212455476e-06,
    -3.6425099266415365e-06,
    2.1539785857709895e-06,
    1.2741489110778367e-06,
    -7.534104896821374e-07,
    -2.3432549276664443e-07,
    1.390331298772246e-07,
)


def erfcx(x: Scalar) -> Scalar:
    """Below 0 it is 2 exp(x^2) - erfcx(-x), infinite from -26.7 on."""
    size = x.absolute()
    t = 1 - constant(2 * CENTRE, x.dtype) / (size + CENTRE)
    above = horner(t, ERFCX) / (size + size + 1)
    bounded = x.maximum(-27.0)
    square = bounded * bounded
    rest = bounded.math("fma", bounded, -square)
    below = square.math("exp") * (rest + 1) * 2 - above
    return select(x < 0, below, above)


def ndtr(x: Scalar) -> Scalar:
    """Phi(x), corrected by its slope for what rounds x / sqrt(2)."""
    bounded = x.maximum(-40.0).minimum(40.0)
    scaled = bounded * -ROOT_HALF
    rest = -bounded.math("fma", constant(ROOT_HALF, x.dtype), scaled)
    rest = rest - bounded * ROOT_HALF_LOW
    slope = (-(scaled * scaled)).math("exp") * (2 / math.sqrt(math.pi))
    return (scaled.math("erfc") - rest * slope) * 0.5


def log_ndtr(x: Scalar) -> Scalar:
    """log Phi(x): below -1 of erfcx, which is no small number there."""
    scaled = x * -ROOT_HALF
    far = (erfcx(scaled.maximum(0.0)) * 0.5).math("log") - scaled * scaled
    near = ((-scaled).math("erfc") * -0.5).math("log1p")
    return select(x < -1, far, near)


def erfinv(y: Scalar) -> Scalar:
    """Infinite at -1 and 1, NaN outside."""
    rest = (1 - y) * (y + 1)
    return y * _slope(-rest.math("log"))


def ndtri(p: Scalar) -> Scalar:
    """Infinite at 0 and 1, NaN outside."""
    y = p + p - 1
    w = -(p.math("log") + (-p).math("log1p") + 2 * math.log(2))
    found = y * _slope(select(y.absolute() < 0.5, -((1 - y) * (y + 1)).math("log"), w))
    return found * ROOT_TWO


def _slope(w: Scalar) -> Scalar:
    """erfinv(y) / y of w = -log(1 - y^2): NaN stays, infinity is infinite."""
    root = w.maximum(0.0).math("sqrt")
    near = horner(w * (1 / 3.125) - 1, INV_NEAR)
    middle = horner((root - 3.25) * (1 / 0.75), INV_MID)
    far = horner((root - 5.25) * (1 / 1.25), INV_FAR)
    tail = horner((root - 16.9) * (1 / 10.4), INV_TAIL)
    found = select(root > 6.5, tail, select(root > 4, far, middle))
    found = select(w > 6.25, found, near)
    return select(w.equal(math.inf), w, found)
