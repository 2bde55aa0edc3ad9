# Runs the wsh container beside a desktop on this machine: host alias mapped, port and token passed, bridge looked at
# first. Further arguments become the container's command.
[CmdletBinding()]
param(
    [string]$Engine = $env:WSH_ENGINE,
    [string]$Image = $(if ($env:WSH_IMAGE) { $env:WSH_IMAGE } else { 'wsh' }),
    [int]$Port = $(if ($env:WSH_PORT) { [int]$env:WSH_PORT } else { 8080 }),
    [string]$Workspace = $(if ($env:WSH_WORKSPACE) { $env:WSH_WORKSPACE } else { (Get-Location).Path }),
    [Parameter(ValueFromRemainingArguments = $true)][string[]]$Command = @()
)
Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'

if (-not $Engine) {
    $found = @('podman', 'docker') | Where-Object { Get-Command $_ -ErrorAction SilentlyContinue } | Select-Object -First 1
    if (-not $found) {
        [Console]::Error.WriteLine('run-container: neither podman nor docker was found; set WSH_ENGINE')
        exit 69
    }
    $Engine = $found
}

if (-not $env:PM_INTERACTIVE_TERMINAL_HOST_PORT) { $env:PM_INTERACTIVE_TERMINAL_HOST_PORT = '45459' }
if (-not $env:PM_INTERACTIVE_TERMINAL_HOST_ALIAS) {
    $env:PM_INTERACTIVE_TERMINAL_HOST_ALIAS = if ($Engine -like '*podman*') { 'host.containers.internal' } else { 'host.docker.internal' }
}
if (-not $env:PM_INTERACTIVE_TERMINAL_TOKEN -and $env:WSH_WITHOUT_DESKTOP -ne '1') {
    [Console]::Error.WriteLine('run-container: no token: set PM_INTERACTIVE_TERMINAL_TOKEN to that of interactive-terminal, or WSH_WITHOUT_DESKTOP=1')
    exit 64
}

# Preflight: a warning, not a refusal, since the desktop may be started later.
if ($env:WSH_WITHOUT_DESKTOP -ne '1') {
    $probe = New-Object System.Net.Sockets.TcpClient
    try {
        $reached = $probe.ConnectAsync('127.0.0.1', [int]$env:PM_INTERACTIVE_TERMINAL_HOST_PORT).Wait(2000)
    } catch {
        $reached = $false
    } finally {
        $probe.Dispose()
    }
    if (-not $reached) {
        Write-Warning "nothing listens on port $($env:PM_INTERACTIVE_TERMINAL_HOST_PORT) of this machine; interactive requests fail with PM_TERM_GUI_UNAVAILABLE until interactive-terminal runs there"
    }
}

# The server inside knows only its own port: what is published must be named as a host that it may be called by.
if (-not $env:WSH_SERVER_ALLOWED_HOSTS) { $env:WSH_SERVER_ALLOWED_HOSTS = "127.0.0.1:${Port},localhost:${Port}" }

# Secrets go by name, so that their values stand in no process list.
$passed = @(
    'PM_INTERACTIVE_TERMINAL_TOKEN', 'PM_INTERACTIVE_TERMINAL_HOST_ALIAS', 'PM_INTERACTIVE_TERMINAL_HOST_FALLBACK_ALIAS',
    'PM_INTERACTIVE_TERMINAL_HOST_PORT', 'PM_INTERACTIVE_TERMINAL_CONNECT_TIMEOUT_MS',
    'PM_INTERACTIVE_TERMINAL_REQUEST_TIMEOUT_MS', 'PM_INTERACTIVE_TERMINAL_TRACE_BRIDGE', 'PM_TERM_ADAPTER_MODE',
    'WSH_ALIAS_STAGE', 'WSH_WITHOUT_DESKTOP', 'WSH_TOKEN', 'WSH_SERVER_ALLOWED_HOSTS', 'ALLOWED_COMMANDS', 'ALLOWED_CWD_ROOTS'
) | Where-Object { [Environment]::GetEnvironmentVariable($_) }

$arguments = @('run', '--rm', '--interactive', '--init',
    '--add-host', 'host.containers.internal:host-gateway', '--add-host', 'host.docker.internal:host-gateway',
    '--publish', "127.0.0.1:${Port}:8080", '--volume', "${Workspace}:/workspace")
foreach ($name in $passed) { $arguments += @('--env', $name) }
$arguments += $Image
$arguments += $Command
& $Engine @arguments
exit $LASTEXITCODE
