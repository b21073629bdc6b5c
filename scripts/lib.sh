# What the scripts share. Source it from the root of the repository.

# ensure_venv EXTRAS [TORCH]: a virtual environment with this package and those extras; sets PYTHON to its interpreter.
# Where torch is missing, TORCH is asked for beside them, or nothing if that is "": for extras that need no torch.
#
# AGENTGYM_VENV      where it lies (.venv)
# AGENTGYM_TORCH     what TORCH is if it is not given (torch==2.13.0). On Linux the package index has torch with CUDA,
#                    which is large; give another requirement here if you want another build, with options of pip if need be.
# AGENTGYM_INSTALLER what installs: uv or pip (uv where there is one)
ensure_venv() {
    local extras=$1 torch=${2-${AGENTGYM_TORCH:-torch==2.13.0}} venv=${AGENTGYM_VENV:-.venv} stamp wanted
    stamp="$venv/.agentgym-${extras//,/-}"
    wanted="$PWD $(cksum <pyproject.toml)"
    PYTHON="$(mkdir -p "$venv" && cd "$venv" && pwd)/bin/python"
    [ -x "$PYTHON" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return

    if ! "$PYTHON" -m pip --version >/dev/null 2>&1; then # none yet, or one whose making was interrupted
        python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
            { echo "AgentGym Envs needs Python 3.11 or newer as python3" >&2; return 1; }
        python3 -m venv "$venv"
    fi
    [ -z "$torch" ] || ! "$PYTHON" -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))' ||
        torch="" # whichever build there is may stay
    echo "Installing agentgym-envs[$extras] into $venv: $(size_of "$extras")"
    case "$torch" in *" -"*) # options, which are for torch alone
        install_packages "$venv" $torch || return
        torch="" ;;
    esac
    # Torch is pinned and in the same resolution, so that no other package's requirement chooses the largest one's version.
    install_packages "$venv" $torch -e ".[$extras]" || return
    echo "$wanted" >"$stamp"
}

# size_of EXTRAS: what an installation of them brings, roughly.
size_of() {
    case ",$1," in
        *,dev,*) echo "about 260 packages and 3 GB, or 8 GB where torch comes with CUDA; a few minutes the first time" ;;
        *,all,*) echo "about 90 packages and 2 GB, or 7 GB where torch comes with CUDA; a few minutes the first time" ;;
        *) echo "the first time, which takes a minute" ;;
    esac
}

# install_packages VENV REQUIREMENTS...: by uv where it is present, and by pip where it is not or does not succeed.
install_packages() {
    local venv=$1 python="$1/bin/python" log="$1/install.log"
    shift
    if [ "${AGENTGYM_INSTALLER:-uv}" = uv ] && command -v uv >/dev/null; then
        uv pip install --python "$python" "$@" && return
        echo "uv did not succeed; trying pip ..." >&2
    fi
    "$python" -m pip install -q --disable-pip-version-check --upgrade pip 2>/dev/null || true # an old one is slower
    "$python" -m pip install --disable-pip-version-check --progress-bar off "$@" 2>&1 |
        PYTHONUNBUFFERED=1 python3 scripts/pip_progress.py "$log"
}

# ensure_verified: webarena-verified in an environment of its own, since it pins much; tests score with it what they
# find of WebArena's tasks there. Sets the variables that name both.
ensure_verified() {
    local venv=${AGENTGYM_VENV:-.venv}-verified
    [ -n "${AGENTGYM_WEBARENA_VERIFIED_PYTHON:-}" ] && return
    "$venv/bin/python" -c 'import webarena_verified' 2>/dev/null || {
        echo "Installing webarena-verified into $venv: about 50 packages and 90 MB"
        python3 -m venv "$venv"
        install_packages "$venv" webarena-verified==1.2.3 || return
    }
    AGENTGYM_WEBARENA_VERIFIED_PYTHON="$(cd "$venv/bin" && pwd)/python"
    export AGENTGYM_WEBARENA_VERIFIED_PYTHON
}

# ensure_chromium: a Chromium for the web environments: one that is there (CHROMIUM_PATH, Playwright's own, or on PATH),
# or one that is installed now: from Debian's or Ubuntu's packages as root, else Playwright's own into the home folder.
ensure_chromium() {
    chromium_there && return
    echo "Installing Chromium for the web environments: about 200 MB"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        { apt-get install -y -q --no-install-recommends chromium-headless-shell ||
            { apt-get update -q && apt-get install -y -q --no-install-recommends chromium-headless-shell; }; } \
            >/dev/null 2>&1 && chromium_there && return
    fi
    "$PYTHON" -m playwright install chromium-headless-shell >/dev/null 2>&1 && chromium_there && return
    echo "No Chromium was found and none could be installed. Install one (apt-get install chromium-headless-shell, or" >&2
    echo "playwright install chromium-headless-shell), or name one by CHROMIUM_PATH." >&2
    return 1
}

chromium_there() {
    local name
    [ -n "${CHROMIUM_PATH:-}" ] && return
    for name in chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable chrome; do
        command -v "$name" >/dev/null && return
    done
    compgen -G "${PLAYWRIGHT_BROWSERS_PATH:-$HOME/.cache/ms-playwright}/chromium*-*/*/*" >/dev/null
}
