"""Things that other machines or daemons hold: containers, clusters, clouds, published packages, forges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from wsh.policy.danger.model import Check, RiskModel, Scene, always, danger, program
from wsh.policy.parse.option import Arguments, scan
from wsh.policy.parse.option import arity as make_arity
from wsh.policy.verdict import Kind, Risk, RiskReason

_CONTAINER, _INFRA = Kind.CONTAINER, Kind.INFRASTRUCTURE


def _exec_inside(values: str, skip: int, contained: bool) -> Check:
    """`docker exec C cmd`: look at the command. A fresh container has nothing to lose, not even its root folder."""
    spec = make_arity(values, permute=False)

    def check(_arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
        words = list(scene.words)
        start = next((i for i, word in enumerate(words) if word in ("exec", "run")), len(words))
        rest = scan(words[start + 1 :], spec).rest[skip:]
        if rest[:1] == ["--"]:
            rest = rest[1:]
        for finding in scene.look(rest) if rest else ():
            if contained and finding.risk is Risk.IRRECOVERABLE:
                yield RiskReason(Risk.DESTRUCTIVE, finding.kind, finding.what + " in a container", finding.command)
            elif not contained or finding.risk is not Risk.NONE:
                yield finding

    return check


_RUN_VALUES = (
    "-e -v -p -w -u -h -l -a -m -c --env --volume --publish --workdir --user --hostname --label --attach "
    "--memory --cpus "
    "--name --network --net --mount --entrypoint --env-file --add-host --cap-add --cap-drop --device --dns --gpus --ip "
    "--link --log-driver --log-opt --pid --platform --pull --restart --runtime --security-opt --shm-size --stop-signal "
    "--stop-timeout --tmpfs --ulimit --userns --cidfile --cgroupns --ipc --isolation --group-add --health-cmd "
    "--domainname"
)
_EXEC_VALUES = "-e -u -w --env --user --workdir --env-file --detach-keys --index"


def _removal(verbs: str, what: str) -> RiskModel:
    return program(subcommands={verbs: always(_CONTAINER, what)}, permute=False)


_COMPOSE = program(
    values="-f -p --file --project-name --profile --env-file --project-directory --ansi --parallel --progress",
    permute=False,
    subcommands={
        "down": always(_CONTAINER, "removes the containers of a project"),
        "rm kill stop": always(_CONTAINER, "stops or removes containers"),
        "exec": program(check=_exec_inside(_EXEC_VALUES, 1, False)),
        "run": program(check=_exec_inside(_RUN_VALUES, 1, True)),
    },
)

_DOCKER = program(
    values="-H -c -l --host --context --config --log-level --tlscacert --tlscert --tlskey --url --connection --root",
    permute=False,
    subcommands={
        "rm rmi kill stop": always(_CONTAINER, "stops or removes containers or images"),
        "container": _removal("rm remove prune kill stop", "stops or removes containers"),
        "image images builder buildx": _removal("rm remove prune", "removes images or build caches"),
        "volume": _removal("rm remove prune", "removes volumes and the data in them"),
        "network": _removal("rm remove prune", "removes networks"),
        "system": _removal("prune reset", "removes everything that is not in use"),
        "swarm": _removal("leave", "leaves the swarm"),
        "stack service secret config node context plugin pod machine manifest": _removal(
            "rm remove down prune kill stop", "removes it"
        ),
        "compose": _COMPOSE,
        "exec": program(check=_exec_inside(_EXEC_VALUES, 1, False)),
        "run create": program(check=_exec_inside(_RUN_VALUES, 1, True)),
    },
)

_KUBE_VALUES = (
    "-n -f -l -o -c -k -s --namespace --filename --selector --output --container --kustomize --server --context "
    "--cluster "
    "--kubeconfig --user --token --as --request-timeout --field-selector --grace-period --timeout --replicas"
)


def _kubectl_scale(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if arguments.value("--replicas") == "0":
        yield scene.found(_INFRA, "scales a workload down to nothing")


def _kubectl_exec(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    """Options may follow the pod's name; the command follows `--`, or in the old way of writing the name."""
    words = scene.words
    if "--" in words[:-1]:
        yield from scene.look(words[words.index("--") + 1 :])
    else:
        yield from _exec_inside(_KUBE_VALUES, 1, False)(arguments, scene)


_KUBECTL = program(
    values=_KUBE_VALUES,
    permute=False,
    subcommands={
        "delete": program(
            danger(_INFRA, "removes objects of the cluster", unless="--dry-run --help"), values=_KUBE_VALUES
        ),
        "drain": always(_INFRA, "evicts everything from a node", values=_KUBE_VALUES),
        "replace apply": program(
            danger(_INFRA, "removes and recreates objects", "--force --prune"), values=_KUBE_VALUES
        ),
        "scale": program(check=_kubectl_scale, values=_KUBE_VALUES),
        "config": program(
            subcommands={"delete-context delete-cluster delete-user unset": always(_INFRA, "removes access settings")}
        ),
        "exec": program(check=_kubectl_exec),
    },
)

_TERRAFORM = program(
    values="-chdir",
    single_dash=True,
    permute=False,
    subcommands={
        "destroy": always(_INFRA, "destroys infrastructure", single_dash=True),
        "apply": program(danger(_INFRA, "changes infrastructure, which may destroy some"), single_dash=True),
        "state": program(
            subcommands={"rm push replace-provider": always(_INFRA, "changes the state")}, single_dash=True
        ),
        "workspace": program(subcommands={"delete": always(_INFRA, "removes a workspace")}, single_dash=True),
        "taint untaint force-unlock": always(_INFRA, "marks resources for destruction or breaks a lock"),
        "run-all": program(subcommands={"destroy apply": always(_INFRA, "destroys infrastructure")}),
    },
)

_DELETING = re.compile(
    r"^(?:delete|del|destroy|remove|rm|rb|purge|terminate|terminate-instances|wipe|reset|revoke|undeploy|uninstall|prune)$"
    r"|^(?:delete|terminate|remove|deregister|purge|destroy|revoke|batch-delete|cancel|disable)-"
    r"|:(?:delete|destroy|remove|reset|rm)$"
)


def _verbs(first: int, last: int) -> Check:
    """A command line tool of nouns and verbs: one of its leading words (by position) deletes."""

    def check(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
        if arguments.has("--help", "--dry-run", "--dryrun"):
            return
        leading = arguments.operands[first:last]
        if any(_DELETING.search(word) for word in leading):
            yield scene.found(_INFRA, "removes something that a service holds")
        elif arguments.has("--delete", "--delete-excluded"):
            yield scene.found(_INFRA, "removes what is not in the source")

    return check


def _gh_api(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if (arguments.value("-X", "--method") or "").upper() == "DELETE":
        yield scene.found(_INFRA, "sends a DELETE request")


_GH_VALUES = "-R -X -f -F -H -q -t --repo --method --field --raw-field --header --jq --template --hostname --input"
_FORGE = program(
    values=_GH_VALUES,
    check=_verbs(1, 2),
    subcommands={
        "api": program(check=_gh_api, values=_GH_VALUES),
        "repo": program(
            danger(_INFRA, "removes or archives a repository", operand=r"^(?:delete|archive)$"), values=_GH_VALUES
        ),
    },
)
_CLOUD_VALUES = (
    "--profile --region --output --endpoint-url --query --project --account --format --filter --subscription -o -g -n "
    "--resource-group --name --color --ca-bundle --cli-read-timeout --configuration --zone "
    "--impersonate-service-account"
)


def _curl(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    method = arguments.value("-X", "--request", "--method") or ""
    if method.upper() == "DELETE":
        yield scene.found(_INFRA, "sends a DELETE request")
    body = " ".join(value for value in (arguments.value("-Q", "--quote"),) if value)
    if re.search(r"\b(?:DELE|RMD)\b", body):
        yield scene.found(Kind.DELETE, "removes files on a server")


def _httpie(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if arguments.operands[:1] == ["DELETE"]:
        yield scene.found(_INFRA, "sends a DELETE request")


PROGRAMS: Mapping[str, RiskModel] = {
    "docker podman nerdctl": _DOCKER,
    "docker-compose podman-compose": _COMPOSE,
    "kubectl oc k3s": _KUBECTL,
    "helm": program(
        values=_KUBE_VALUES + " --kube-context",
        permute=False,
        subcommands={"uninstall delete del un": always(_INFRA, "removes a release", values=_KUBE_VALUES)},
    ),
    "terraform tofu terragrunt": _TERRAFORM,
    "pulumi": program(
        values="-C -s --cwd --stack",
        permute=False,
        subcommands={
            "destroy cancel": always(_INFRA, "destroys infrastructure"),
            "up update": always(_INFRA, "changes infrastructure, which may destroy some"),
            "stack state": program(subcommands={"rm delete": always(_INFRA, "removes a stack or its state")}),
        },
    ),
    "cdk vagrant sls serverless": program(
        subcommands={"destroy remove": always(_INFRA, "destroys what was deployed")},
        values="--profile -c",
        permute=False,
    ),
    "aws": program(check=_verbs(1, 2), values=_CLOUD_VALUES),
    "gcloud az oci doctl hcloud linode-cli openstack scw exo ibmcloud aliyun bq eksctl minikube kind k3d argocd "
    "flux": program(check=_verbs(0, 6), values=_CLOUD_VALUES),
    "gsutil s3cmd mc s3cmd s5cmd b2": program(check=_verbs(0, 2), values="-h -o"),
    "gh glab hub tea": _FORGE,
    "heroku fly flyctl vercel netlify firebase railway wrangler supabase": program(
        check=_verbs(0, 3), values="-a --app -p --project -c --config --token"
    ),
    "curl": program(
        check=_curl,
        values="-X -H -d -o -u -b -c -A -e -F -T -x -w -m -K -Q -E -r -y -Y -z -C -D --request --header --data "
        "--output "
        "--user --cookie --user-agent --referer --form --upload-file --proxy --write-out --max-time --config --quote "
        "--data-raw --data-binary --url --retry --connect-timeout --cacert --cert --key",
    ),
    "wget": program(check=_curl, values="-O -o -P -U -e --method --output-document --header --body-data --user-agent"),
    "http https xh": program(check=_httpie, values="-a -A -o --auth --output --session"),
    "consul nomad vault etcdctl": program(
        check=_verbs(0, 3), values="-address -namespace --endpoints", single_dash=True
    ),
    "rabbitmqctl": program(
        danger(Kind.DATABASE, "removes messages or queues", operand=r"^(?:delete_|purge_|reset|force_reset)")
    ),
    "rabbitmqadmin": program(danger(Kind.DATABASE, "removes messages or queues", operand=r"^(?:delete|purge)$")),
    "kafka-topics kafka-topics.sh kafka-consumer-groups kafka-delete-records": program(
        danger(Kind.DATABASE, "removes topics or groups", "--delete"), values="--bootstrap-server --topic --group"
    ),
}
