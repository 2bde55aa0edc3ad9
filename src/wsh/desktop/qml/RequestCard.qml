import QtQuick
import QtQuick.Controls.Basic
import QtQuick.Layouts

// Evidence first: the command in full, then where, then as whom, then why it is risky, then the buttons.
Rectangle {
    id: card
    required property string rid
    required property string kind
    required property string command
    required property var argv
    required property string cwd
    required property string executable
    required property string sha256
    required property var env
    required property string risk
    required property var reasons
    required property string asker
    required property string client
    required property string workspace
    required property string trace_id
    required property double deadline
    required property string rule
    required property int index

    readonly property bool dangerous: risk !== "none"
    property int remaining: app.secondsLeft(deadline)
    property string asking: ""
    property bool mustHold: false
    property string effect: ""
    readonly property bool first: index === 0 && app.page === "requests" && asking === ""

    objectName: "card"
    implicitHeight: body.implicitHeight + 32
    radius: 8
    color: look.c.raised
    border.color: dangerous ? look.c.danger : look.c.edge
    border.width: dangerous ? 2 : 1
    Accessible.role: Accessible.Grouping
    Accessible.name: (dangerous ? "Destructive request: " : "Request: ") + command

    Connections {
        target: app
        function onClockChanged() { card.remaining = app.secondsLeft(card.deadline) }
        function onPreviewed(pattern, text) { if (card.asking === "always" && pattern === extra.text) card.effect = text }
        function onHoldWanted(rid, why) {
            if (rid !== card.rid) return
            card.mustHold = true
            problem.text = "As edited it is destructive: " + why + ". Hold the button for a second to run it."
        }
    }

    ColumnLayout {
        id: body
        anchors { left: parent.left; right: parent.right; top: parent.top; margins: 16 }
        spacing: 8

        RowLayout {
            Layout.fillWidth: true
            spacing: 8
            Rectangle {
                visible: card.dangerous
                radius: 4
                color: look.c.danger
                implicitWidth: shieldRow.implicitWidth + 14
                implicitHeight: 20
                Row {
                    id: shieldRow
                    anchors.centerIn: parent
                    spacing: 5
                    Canvas {
                        width: 11
                        height: 13
                        anchors.verticalCenter: parent.verticalCenter
                        onPaint: {
                            const g = getContext("2d")
                            g.reset()
                            g.fillStyle = look.c.on_accent
                            g.beginPath()
                            g.moveTo(5.5, 0.5)
                            g.lineTo(10.5, 2.5)
                            g.lineTo(10.5, 6)
                            g.quadraticCurveTo(10, 10.5, 5.5, 12.5)
                            g.quadraticCurveTo(1, 10.5, 0.5, 6)
                            g.lineTo(0.5, 2.5)
                            g.closePath()
                            g.fill()
                        }
                    }
                    Text { text: card.risk; color: look.c.on_accent; font.bold: true; font.pixelSize: 12 }
                }
            }
            Text {
                text: card.kind === "open" ? "Open a terminal" : card.kind === "send" ? "Type into a terminal" : "Run a command"
                color: look.c.text_soft
                Layout.fillWidth: true
            }
            Text {
                objectName: "countdown"
                text: card.remaining > 90 ? Math.round(card.remaining / 60) + " min left" : card.remaining + " s left"
                color: card.remaining <= 15 ? look.c.danger : look.c.text_soft
                font.bold: card.remaining <= 15
            }
        }
        Rectangle {
            Layout.fillWidth: true
            Layout.preferredHeight: Math.min(200, commandText.implicitHeight + 20)
            radius: 6
            color: look.c.sunken
            border.color: look.c.edge
            clip: true
            Flickable {
                anchors { fill: parent; margins: 10 }
                contentHeight: commandText.implicitHeight
                boundsBehavior: Flickable.StopAtBounds
                ScrollBar.vertical: ScrollBar { }
                TextEdit {
                    id: commandText
                    objectName: "commandText"
                    width: parent.width
                    text: card.command
                    textFormat: TextEdit.PlainText
                    readOnly: true
                    selectByMouse: true
                    wrapMode: TextEdit.WrapAnywhere
                    color: look.c.text
                    font.family: "monospace"
                    font.pixelSize: 14
                    Accessible.name: "Command: " + card.command
                }
            }
        }
        GridLayout {
            Layout.fillWidth: true
            columns: 2
            columnSpacing: 12
            rowSpacing: 3
            Label2 { text: "in" } Value2 { text: card.cwd }
            Label2 { text: "runs"; visible: card.executable !== "" } Value2 { text: card.executable + (card.sha256 ? "   sha256 " + card.sha256.slice(0, 16) + "…" : ""); visible: card.executable !== "" }
            Label2 { text: "sets"; visible: card.env.length > 0 } Value2 { text: card.env.join("\n"); visible: card.env.length > 0 }
            Label2 { text: "asked by" } Value2 { text: card.asker + (card.workspace ? "   in " + card.workspace : "") }
            Label2 { text: "trace" } Value2 { text: card.trace_id; color: look.c.text_soft }
            Label2 { text: "because"; visible: card.reasons.length > 0 } Value2 { text: card.reasons.join("\n"); visible: card.reasons.length > 0; color: card.dangerous ? look.c.danger : look.c.text; font.family: root.font.family }
        }
        TextField {
            id: extra
            objectName: "extra"
            visible: card.asking !== ""
            Layout.fillWidth: true
            color: look.c.text
            placeholderTextColor: look.c.text_soft
            font.family: card.asking === "decline" ? root.font.family : "monospace"
            placeholderText: card.asking === "decline" ? "Why not? (the caller is told)" : card.asking === "always" ? "The rule that will be written; narrow it if you like" : "The command to run instead"
            background: Rectangle { radius: 6; color: look.c.sunken; border.color: extra.activeFocus ? look.c.accent : look.c.edge }
            onTextChanged: { card.mustHold = card.asking === "edit" && card.dangerous; problem.text = ""; if (card.asking === "always") app.preview(text) }
            onAccepted: card.finish(false)
            Keys.onEscapePressed: card.asking = ""
        }
        Text {
            visible: card.asking === "always"
            text: "Writes an allow rule to " + app.policyPath + ". " + card.effect
            color: look.c.text_soft
            font.pixelSize: 12
            wrapMode: Text.Wrap
            Layout.fillWidth: true
        }
        Text { id: problem; visible: text !== ""; color: look.c.danger; wrapMode: Text.Wrap; Layout.fillWidth: true }
        RowLayout {
            Layout.fillWidth: true
            spacing: 8
            visible: card.asking === ""
            PlainButton {
                objectName: "runOnce"
                text: card.dangerous ? "Hold to run once" : "Run once"
                primary: !card.dangerous
                danger: card.dangerous
                focus: card.index === 0 && !card.dangerous
                tip: card.dangerous ? "Hold for a second: this destroys something" : "Ctrl+Return"
                // A destructive command is never one stray key away: it wants to be held.
                holdable: card.dangerous
                onClicked: if (!card.dangerous) app.approve(card.rid, "once", "")
                onHeld: app.approve(card.rid, "once", "")
            }
            PlainButton { objectName: "runSession"; text: "Allow for this session"; visible: !card.dangerous && card.kind === "run"; onClicked: app.approve(card.rid, "session", ""); tip: "This exact command, until the caller goes away (Ctrl+Shift+Return)" }
            PlainButton { objectName: "runAlways"; text: "Always…"; visible: !card.dangerous && card.kind === "run"; onClicked: card.ask("always", card.rule); tip: "Ctrl+Shift+A" }
            PlainButton { objectName: "edit"; text: "Edit…"; visible: card.kind === "run"; onClicked: card.ask("edit", app.editable(card.rid)); tip: "Ctrl+E" }
            Item { Layout.fillWidth: true }
            PlainButton { objectName: "decline"; text: "Decline"; tip: "Ctrl+Backspace"; onClicked: app.decline(card.rid, "") }
            PlainButton { objectName: "declineWhy"; text: "Decline…"; onClicked: card.ask("decline", ""); tip: "Ctrl+Shift+Backspace" }
        }
        RowLayout {
            Layout.fillWidth: true
            spacing: 8
            visible: card.asking !== ""
            PlainButton {
                objectName: "confirm"
                text: card.asking === "decline" ? "Decline" : card.asking === "always" ? "Write rule and run" : card.mustHold ? "Hold to run this instead" : "Run this instead"
                primary: !card.mustHold
                danger: card.mustHold
                holdable: card.mustHold
                onClicked: if (!card.mustHold) card.finish(false)
                onHeld: card.finish(true)
            }
            PlainButton { text: "Back"; tip: "Escape"; onClicked: card.asking = "" }
        }
    }

    Shortcut { sequence: "Ctrl+Return"; enabled: card.first && !card.dangerous; onActivated: app.approve(card.rid, "once", "") }
    Shortcut { sequence: "Ctrl+Shift+Return"; enabled: card.first && !card.dangerous && card.kind === "run"; onActivated: app.approve(card.rid, "session", "") }
    Shortcut { sequence: "Ctrl+Shift+A"; enabled: card.first && !card.dangerous && card.kind === "run"; onActivated: card.ask("always", card.rule) }
    Shortcut { sequence: "Ctrl+E"; enabled: card.first && card.kind === "run"; onActivated: card.ask("edit", app.editable(card.rid)) }
    Shortcut { sequence: "Ctrl+Backspace"; enabled: card.first; onActivated: app.decline(card.rid, "") }
    Shortcut { sequence: "Ctrl+Shift+Backspace"; enabled: card.first; onActivated: card.ask("decline", "") }

    function ask(what, text) {
        asking = what
        extra.text = text
        mustHold = what === "edit" && dangerous
        problem.text = ""
        extra.forceActiveFocus()
        extra.selectAll()
    }
    function finish(held) {
        if (asking === "decline") app.decline(rid, extra.text)
        else if (asking === "always") app.approve(rid, "always", extra.text)
        else problem.text = app.approveEdited(rid, extra.text, held)
    }

    component Label2: Text { color: look.c.text_soft; font.pixelSize: 12; Layout.alignment: Qt.AlignBaseline }
    component Value2: Text {
        color: look.c.text
        font.family: "monospace"
        font.pixelSize: 12
        textFormat: Text.PlainText
        wrapMode: Text.WrapAnywhere
        Layout.alignment: Qt.AlignBaseline
        Layout.fillWidth: true
    }
}
