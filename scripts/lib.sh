# Functions shared by the scripts. Source this file from the root of the repository.

# ensure_venv EXTRAS [TORCH]: create a virtual environment with this package and these extras, and set PYTHON to its
# interpreter. If torch is missing, the requirement TORCH is installed too; pass "" for extras that need no torch.
#
# AGENTGYM_VENV      path of the environment (default: .venv)
# AGENTGYM_TORCH     default of TORCH (torch==2.13.0). On Linux, the package index has torch with CUDA, which is large; set
#                    another requirement for another build, with pip options if necessary.
# AGENTGYM_INSTALLER uv or pip (default: uv if it is installed)
ensure_venv() {
    local extras=$1 torch=${2-${AGENTGYM_TORCH:-torch==2.13.0}} venv=${AGENTGYM_VENV:-.venv} stamp wanted
    stamp="$venv/.agentgym-${extras//,/-}"
    wanted="$PWD $(cksum <pyproject.toml)"
    PYTHON="$(mkdir -p "$venv" && cd "$venv" && pwd)/bin/python"
    [ -x "$PYTHON" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return

    if ! "$PYTHON" -m pip --version >/dev/null 2>&1; then # missing, or its creation was interrupted
        python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
            { echo "AgentGym Envs needs Python 3.11 or newer as python3" >&2; return 1; }
        python3 -m venv "$venv"
    fi
    [ -z "$torch" ] || ! "$PYTHON" -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))' ||
        torch="" # keep the build that is installed
    echo "Installing agentgym-envs[$extras] into $venv: $(size_of "$extras")"
    case "$torch" in *" -"*) # pip options, which apply to torch only
        install_packages "$venv" $torch || return
        torch="" ;;
    esac
    # Pin torch in the same resolution, so that the requirement of another package does not choose its version.
    install_packages "$venv" $torch -e ".[$extras]" || return
    echo "$wanted" >"$stamp"
}

# size_of EXTRAS: print the approximate size of an installation.
size_of() {
    case ",$1," in
        *,dev,*) echo "about 260 packages and 3 GB, or 8 GB where torch comes with CUDA; a few minutes the first time" ;;
        *,all,*) echo "about 90 packages and 2 GB, or 7 GB where torch comes with CUDA; a few minutes the first time" ;;
        *) echo "the first time, which takes a minute" ;;
    esac
}

# install_packages VENV REQUIREMENTS...: install with uv; without uv, or if it fails, with pip.
install_packages() {
    local venv=$1 python="$1/bin/python" log="$1/install.log"
    shift
    if [ "${AGENTGYM_INSTALLER:-uv}" = uv ] && command -v uv >/dev/null; then
        uv pip install --python "$python" "$@" && return
        echo "uv did not succeed; trying pip ..." >&2
    fi
    "$python" -m pip install -q --disable-pip-version-check --upgrade pip 2>/dev/null || true # old versions are slower
    "$python" -m pip install --disable-pip-version-check --progress-bar off "$@" 2>&1 |
        PYTHONUNBUFFERED=1 python3 scripts/pip_progress.py "$log"
}

# ensure_peer NAME VARIABLE MODULE SIZE REQUIREMENTS...: install packages that do not fit beside those of the other
# tests into an environment of their own, .venv-NAME, and set VARIABLE to its interpreter. MODULE is one of theirs. The
# installation is repeated when the requirements change, or pyproject.toml if this package is one of them.
ensure_peer() {
    local venv=${AGENTGYM_VENV:-.venv}-$1 variable=$2 module=$3 size=$4 wanted
    shift 4
    [ -n "${!variable:-}" ] && return
    wanted="$*"
    case "$wanted" in *"-e ."*) wanted="$PWD $wanted $(cksum <pyproject.toml)" ;; esac
    if ! { [ "$(cat "$venv/.agentgym" 2>/dev/null)" = "$wanted" ] && "$venv/bin/python" -c "import $module" 2>/dev/null; }; then
        echo "Installing $module and what it needs into $venv: $size"
        python3 -m venv "$venv"
        install_packages "$venv" "$@" || return
        echo "$wanted" >"$venv/.agentgym"
    fi
    export "$variable=$(cd "$venv/bin" && pwd)/python"
}

# ensure_verified: webarena-verified pins many packages. Tests compare our scores of WebArena's tasks with its scores.
ensure_verified() {
    ensure_peer verified AGENTGYM_WEBARENA_VERIFIED_PYTHON webarena_verified "about 50 packages and 90 MB" \
        webarena-verified==1.2.3
}

# ensure_doors: MCP 2, Inspect and verifiers exclude openenv 0.10. Tests use our environments through them, and read our
# exports with OpenTelemetry's messages.
ensure_doors() {
    ensure_peer doors AGENTGYM_DOORS_PYTHON verifiers "about 165 packages and 1.1 GB; no torch" \
        -e ".[babyai,inspect,mcp,multiagent,sciworld,search,verifiers,webarena]" pytest \
        opentelemetry-proto opentelemetry-semantic-conventions
    export AGENTGYM_PEERS="${AGENTGYM_PEERS:-$AGENTGYM_DOORS_PYTHON}"
}

# ensure_chromium: find a Chromium for the web environments (CHROMIUM_PATH, Playwright's, or on PATH). If there is none,
# install one: as root from Debian's or Ubuntu's packages, otherwise Playwright's into the home folder.
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
