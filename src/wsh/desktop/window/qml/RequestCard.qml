import QtQuick
import QtQuick.Controls.Basic
import QtQuick.Layouts

// Draws an approval's card as it is: evidence first, then what the card says may be pressed. Decides nothing.
Rectangle {
    id: box
    required property string id
    required property var card
    required property int index
    property var view: ListView.view

    readonly property bool grave: card.hold
    readonly property bool current: app.current === id
    readonly property bool keyed: current && app.page === "requests" && asking === ""
    property int remaining: app.secondsLeft(card.deadline)
    property string asking: ""
    property bool mustHold: false
    property string effect: ""
    property bool folded: true
    // How far down the evidence was in view without a gap; what may run is offered when that is all of it.
    property real seenTo: 0
    property bool seen: false

    objectName: "card"
    implicitHeight: body.implicitHeight + 32
    radius: 8
    color: look.c.raised
    border.color: current ? look.c.accent : grave ? look.c.danger : look.c.edge
    border.width: current ? 3 : grave ? 2 : 1
    Accessible.role: Accessible.Grouping
    Accessible.name: (grave ? "Hard to take back: " : "Request: ") + card.command + (current ? ", selected" : "")

    function press(name) { return card.presses.find(one => one.name === name) }
    function look_() {
        if (seen || !view || app.page !== "requests" || !view.visible || evidence.height <= 0) return
        const top = evidence.mapToItem(view.contentItem, 0, 0).y
        const from = view.contentY - top, to = from + view.height
        if (from <= seenTo + 1 && to > seenTo) seenTo = to
        if (seenTo >= evidence.height - 1) seen = true
    }
    onCurrentChanged: if (current && view) view.positionViewAtIndex(index, ListView.Contain)
    onHeightChanged: Qt.callLater(look_)
    onYChanged: Qt.callLater(look_)
    Component.onCompleted: Qt.callLater(look_)
    MouseArea { anchors.fill: parent; onClicked: app.current = box.id }

    Connections { target: box.view; function onContentYChanged() { box.look_() } function onHeightChanged() { box.look_() } }
    Connections {
        target: app
        function onClockChanged() { box.remaining = app.secondsLeft(box.card.deadline); box.look_() }
        function onPageChanged() { Qt.callLater(box.look_) }
        function onPreviewed(pattern, text) { if (box.asking === "always" && pattern === extra.text) box.effect = text }
        function onHoldWanted(id, why) {
            if (id !== box.id) return
            box.mustHold = true
            problem.text = "As it stands it is hard to take back: " + why + ". Hold the button for a second to run it."
        }
        function onRefused(id, why) { if (id === box.id) problem.text = why }
    }

    ColumnLayout {
        id: body
        anchors { left: parent.left; right: parent.right; top: parent.top; margins: 16 }
        spacing: 8

        ColumnLayout {
            id: evidence
            objectName: "evidence"
            Layout.fillWidth: true
            spacing: 8
            Flow {
                Layout.fillWidth: true
                spacing: 8
                Mark { visible: box.card.risk !== "none"; label: box.card.risk; strong: true }
                Repeater {
                    model: box.card.badges
                    Mark { required property var modelData; label: modelData.title; strong: modelData.hold }
                }
                Text { text: box.card.title; color: look.c.text_soft; height: 20; verticalAlignment: Text.AlignVCenter }
                Text {
                    objectName: "countdown"
                    text: box.remaining > 90 ? Math.round(box.remaining / 60) + " min left" : box.remaining + " s left"
                    color: box.remaining <= 15 ? look.c.danger : look.c.text_soft
                    font.bold: box.remaining <= 15
                    height: 20
                    verticalAlignment: Text.AlignVCenter
                }
            }
            Sunken {
                Shown { id: commandText; objectName: "commandText"; text: box.card.command; Accessible.name: "Command: " + box.card.command }
            }
            Sunken {
                visible: box.card.script.length > 1
                ColumnLayout {
                    width: parent.width
                    spacing: 4
                    Text { text: "The script, line by line"; color: look.c.text_soft; font.pixelSize: 11 }
                    Shown { objectName: "scriptText"; Layout.fillWidth: true; text: box.card.script.join("\n"); Accessible.name: "Script: " + text }
                }
            }
            Repeater {
                model: box.card.badges
                Text {
                    required property var modelData
                    text: modelData.sentence
                    textFormat: Text.PlainText
                    color: modelData.hold ? look.c.danger : look.c.text
                    wrapMode: Text.WrapAtWordBoundaryOrAnywhere
                    Layout.fillWidth: true
                }
            }
            GridLayout {
                Layout.fillWidth: true
                columns: 2
                columnSpacing: 12
                rowSpacing: 3
                Label2 { text: "in" } Value2 { text: box.card.cwd }
                Label2 { text: "runs in" } Value2 { objectName: "place"; text: box.card.place_name; font.family: root.font.family }
                Label2 { text: "program"; visible: !!box.card.executable } Value2 { text: box.card.executable || ""; visible: !!box.card.executable }
                Label2 { text: "sets"; visible: box.card.env.length > 0 } Value2 { text: box.card.env.join("\n"); visible: box.card.env.length > 0 }
                Label2 { text: "asked by" } Value2 { text: box.card.asker + (box.card.workspace ? "   in " + box.card.workspace : "") }
                Label2 { text: "it says"; visible: box.card.note !== "" } Value2 { objectName: "note"; text: "“" + box.card.note + "” (the agent's own words, not checked)"; visible: box.card.note !== ""; font.family: root.font.family; font.italic: true; wrapMode: Text.WrapAtWordBoundaryOrAnywhere }
                Label2 { text: "because"; visible: box.card.reasons.length > 0 } Value2 { objectName: "reasons"; text: box.card.reasons.join("\n"); visible: box.card.reasons.length > 0; color: box.card.risk !== "none" ? look.c.danger : look.c.text; font.family: root.font.family; wrapMode: Text.WrapAtWordBoundaryOrAnywhere }
                Label2 { text: "ids"; visible: !box.folded } Value2 {
                    visible: !box.folded
                    color: look.c.text_soft
                    text: "trace " + box.card.trace_id + "\nrequest " + box.card.request_id + (box.card.executable_sha256 ? "\nsha256 " + box.card.executable_sha256 : "")
                }
            }
        }
        TextField {
            id: extra
            objectName: "extra"
            visible: box.asking !== ""
            Layout.fillWidth: true
            color: look.c.text
            placeholderTextColor: look.c.text_soft
            font.family: box.asking === "decline" ? root.font.family : "monospace"
            placeholderText: box.asking === "decline" ? "Why not? (the caller is told)" : box.asking === "always" ? "The rule that will be written" : "The command to run instead"
            background: Rectangle { radius: 6; color: look.c.sunken; border.color: extra.activeFocus ? look.c.accent : look.c.edge }
            onTextChanged: { box.mustHold = box.asking === "edit" && box.grave; problem.text = ""; if (box.asking === "always") app.preview(text) }
            onAccepted: box.finish(false)
            Keys.onEscapePressed: box.asking = ""
        }
        ColumnLayout {
            visible: box.asking === "always"
            Layout.fillWidth: true
            spacing: 4
            Note { text: "Writes an allow rule to " + app.policyPath + ". " + (box.card.always && extra.text === box.card.always.rule ? box.card.always.says : box.effect) }
            Repeater {
                model: box.card.always ? box.card.always.wider : []
                RowLayout {
                    required property var modelData
                    Layout.fillWidth: true
                    spacing: 8
                    PlainButton { text: "Widen to  " + modelData.rule; onClicked: extra.text = modelData.rule }
                    Note { text: modelData.says }
                }
            }
            RowLayout {
                Layout.fillWidth: true
                spacing: 8
                Tick { id: alsoHeadless; objectName: "alsoHeadless"; text: "Headless, too"; onAsked: wanted => alsoHeadless.on = wanted }
                Note { text: box.card.always ? box.card.always.headless_says : "" }
            }
        }
        Text { id: problem; objectName: "problem"; visible: text !== ""; textFormat: Text.PlainText; color: look.c.danger; wrapMode: Text.WrapAtWordBoundaryOrAnywhere; Layout.fillWidth: true }
        // Keeps its place, so that no button moves under the pointer.
        Note { objectName: box.seen || !box.current ? "" : "scrollFirst"; opacity: box.seen ? 0 : 1; text: "Look through all of it first: scroll down to the end, then it can be run." }
        Flow {
            Layout.fillWidth: true
            spacing: 8
            visible: box.asking === ""
            Repeater {
                model: box.card.presses
                PlainButton {
                    required property var modelData
                    objectName: ({ once: "runOnce", session: "runSession", always: "runAlways", edit: "edit", decline: "decline" })[modelData.name]
                    text: modelData.text
                    primary: modelData.name === "once" && !modelData.hold
                    danger: modelData.hold
                    enabled: modelData.name === "decline" || box.seen
                    // What is hard to take back is never one stray key away: it wants to be held.
                    holdable: modelData.name === "once" && modelData.hold
                    tip: modelData.says + (modelData.says ? "  " : "") + box.keysOf(modelData.name)
                    onClicked: if (!holdable) box.go(modelData.name)
                    onHeld: app.answer(box.id, true, { held: true })
                }
            }
            PlainButton { objectName: "declineWhy"; text: "Decline…"; onClicked: box.ask("decline", ""); tip: "Ctrl+Shift+Backspace" }
            PlainButton { objectName: "fold"; text: box.folded ? "Ids…" : "Hide ids"; tip: "Trace, request and the program's hash"; onClicked: box.folded = !box.folded }
        }
        Flow {
            Layout.fillWidth: true
            spacing: 8
            visible: box.asking !== ""
            PlainButton {
                objectName: "confirm"
                text: box.asking === "decline" ? "Decline" : box.asking === "always" ? "Write rule and run" : box.mustHold ? "Hold to run this instead" : "Run this instead"
                primary: !box.mustHold
                danger: box.mustHold
                holdable: box.mustHold
                onClicked: if (!box.mustHold) box.finish(false)
                onHeld: box.finish(true)
            }
            PlainButton { text: "Back"; tip: "Escape"; onClicked: box.asking = "" }
        }
    }

    Shortcut { sequence: "Ctrl+Return"; enabled: box.keyed && box.seen && !box.grave; onActivated: box.go("once") }
    Shortcut { sequence: "Ctrl+Shift+Return"; enabled: box.keyed && box.seen && !!box.press("session"); onActivated: box.go("session") }
    Shortcut { sequence: "Ctrl+Shift+A"; enabled: box.keyed && box.seen && !!box.press("always"); onActivated: box.go("always") }
    Shortcut { sequence: "Ctrl+E"; enabled: box.keyed && box.seen && !!box.press("edit"); onActivated: box.go("edit") }
    Shortcut { sequence: "Ctrl+Backspace"; enabled: box.keyed; onActivated: box.go("decline") }
    Shortcut { sequence: "Ctrl+Shift+Backspace"; enabled: box.keyed; onActivated: box.ask("decline", "") }

    function keysOf(name) {
        return ({ once: grave ? "" : "Ctrl+Return", session: "Ctrl+Shift+Return", always: "Ctrl+Shift+A", edit: "Ctrl+E", decline: "Ctrl+Backspace" })[name] || ""
    }
    function go(name) {
        if (name === "decline") app.answer(id, false, {})
        else if (name === "always") ask("always", card.always.rule)
        else if (name === "edit") ask("edit", card.editable)
        else app.answer(id, true, { scope: name })
    }
    function ask(what, text) {
        app.current = id
        asking = what
        extra.text = text
        mustHold = what === "edit" && grave
        problem.text = ""
        extra.forceActiveFocus()
        extra.selectAll()
    }
    function finish(held) {
        if (asking === "decline") app.answer(id, false, { reason: extra.text })
        else if (asking === "always") app.answer(id, true, { scope: "always", rule: extra.text, headless: alsoHeadless.on })
        else app.answer(id, true, { command: extra.text, held: held })
    }

    component Mark: Rectangle {
        property string label
        property bool strong: false
        radius: 4
        color: strong ? look.c.danger : "transparent"
        border.color: strong ? look.c.danger : look.c.attention
        implicitWidth: markText.implicitWidth + 14
        implicitHeight: 20
        Text { id: markText; anchors.centerIn: parent; text: parent.label; textFormat: Text.PlainText; color: parent.strong ? look.c.on_accent : look.c.text; font.bold: true; font.pixelSize: 12 }
    }
    component Sunken: Rectangle {
        default property alias content: inner.data
        Layout.fillWidth: true
        implicitHeight: inner.childrenRect.height + 20
        radius: 6
        color: look.c.sunken
        border.color: look.c.edge
        Item { id: inner; anchors { left: parent.left; right: parent.right; top: parent.top; margins: 10 } height: childrenRect.height }
    }
    component Shown: TextEdit {
        width: parent ? parent.width : 0
        textFormat: TextEdit.PlainText
        readOnly: true
        selectByMouse: true
        wrapMode: TextEdit.WrapAnywhere
        color: look.c.text
        font.family: "monospace"
        font.pixelSize: 14
    }
    component Label2: Text { color: look.c.text_soft; font.pixelSize: 12; Layout.alignment: Qt.AlignTop }
    component Value2: Text {
        color: look.c.text
        font.family: "monospace"
        font.pixelSize: 12
        textFormat: Text.PlainText
        wrapMode: Text.WrapAnywhere
        Layout.alignment: Qt.AlignTop
        Layout.fillWidth: true
    }
    component Note: Text {
        color: look.c.text_soft
        font.pixelSize: 12
        textFormat: Text.PlainText
        wrapMode: Text.WrapAtWordBoundaryOrAnywhere
        Layout.fillWidth: true
    }
}
