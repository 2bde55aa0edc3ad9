"""Where people and programs keep secrets: one list, by which sandboxes are closed and the policy tells what reads secrets.

Pure: paths as text. What is secret by its name alone, wherever it lies, is the policy's (`policy.risk.secret`).
"""

from __future__ import annotations

SYSTEM_SECRETS = tuple(
    "/etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d /etc/security/opasswd /etc/ssl/private /etc/ssh "
    "/etc/pki/tls/private /etc/krb5.keytab /etc/wireguard /etc/NetworkManager/system-connections /etc/letsencrypt /etc/docker /etc/cups/ssl "
    "/etc/apt/auth.conf /etc/apt/auth.conf.d /etc/netplan /etc/openvpn /etc/ipsec.secrets /etc/rancher /etc/kubernetes".split()
)
"""Files in the system's folders that nobody inside a sandbox may read."""

HOME_SECRETS = tuple(
    ".ssh .aws .gnupg .config/gh .config/gcloud .azure .kube .docker .netrc .git-credentials .config/git/credentials .npmrc .pypirc "
    ".cargo/credentials.toml .password-store .local/share/keyrings .local/share/kwalletd .mozilla .thunderbird .config/google-chrome "
    ".config/chromium .config/BraveSoftware .config/microsoft-edge .config/vivaldi .config/opera "
    ".config/op .config/keepassxc .config/rclone .terraform.d/credentials.tfrc.json".split()
)
"""Below the home folder: never readable in a sandbox, never writable, whatever a profile says."""

SERVICE_SECRETS = tuple(
    ".codex/auth.json .claude/.credentials.json .gemini/oauth_creds.json .config/github-copilot .local/share/opencode/auth.json "
    ".config/containers/auth.json .m2/settings.xml .gradle/gradle.properties".split()
)
"""Below the home folder: with these an agent or a build speaks to its own service, so a profile may list their folders for it."""
