import QtQuick
import QtQuick.Controls.Basic
import QtQuick.Layouts

Item {
    id: page
    property string needle: ""
    property string effect: ""
    property string part: "rules"
    readonly property var parts: ["rules", "limits", "window"]
    function enter() {
        if (app.page !== "settings") return
        if (part === "rules") command.forceActiveFocus()
        else if (part === "limits") firstLimit.begin()
        else notify.forceActiveFocus()
    }
    onPartChanged: enter()
    Repeater {
        model: page.parts
        Item {
            required property string modelData
            required property int index
            Shortcut { sequence: "Alt+" + (index + 1); enabled: app.page === "settings"; onActivated: page.part = modelData }
        }
    }
    ColumnLayout {
        anchors { fill: parent; margins: 16 }
        spacing: 12
        RowLayout {
            Layout.fillWidth: true
            spacing: 8
            Text { text: "Policy"; color: look.c.text; font.pixelSize: 20; font.bold: true; Layout.rightMargin: 16 }
            Repeater {
                model: [{ part: "rules", label: "Rules", keys: "Alt+1" }, { part: "limits", label: "Limits and classes", keys: "Alt+2" }, { part: "window", label: "This window", keys: "Alt+3" }]
                PlainButton {
                    required property var modelData
                    objectName: "part-" + modelData.part
                    text: modelData.label
                    on: page.part === modelData.part
                    tip: modelData.keys
                    onClicked: page.part = modelData.part
                }
            }
            Item { Layout.fillWidth: true }
        }
        Text {
            text: page.part === "window" ? "Kept in config.toml." : "Holds at once, here and in every server that listens to this window. The file is " + app.policyPath
            textFormat: Text.PlainText
            color: look.c.text_soft
            font.pixelSize: 12
            elide: Text.ElideMiddle
            Layout.fillWidth: true
        }

        ColumnLayout {
            visible: page.part === "rules"
            Layout.fillWidth: true
            Layout.fillHeight: true
            spacing: 8
            RowLayout {
                Layout.fillWidth: true
                spacing: 8
                Choice { id: effectChoice; model: ["allow", "deny"]; implicitWidth: 84 }
                Field { id: command; objectName: "ruleCommand"; mono: true; placeholderText: "git status, or make *"; Layout.fillWidth: true; onTextChanged: app.preview(text); onAccepted: add.clicked(); Keys.onDownPressed: list.forceActiveFocus() }
                Choice { id: modes; model: ["both", "interactive", "headless"]; implicitWidth: 130 }
                Field { id: cwd; mono: true; placeholderText: "any folder"; Layout.preferredWidth: 140 }
                Field { id: comment; placeholderText: "why"; Layout.preferredWidth: 140; onAccepted: add.clicked() }
                PlainButton {
                    id: add
                    objectName: "addRule"
                    text: "Add rule"
                    primary: true
                    enabled: command.text.trim() !== ""
                    onClicked: {
                        if (!enabled) return
                        app.addRule(command.text.trim(), effectChoice.currentText, modes.currentText, comment.text, cwd.text.trim())
                        command.clear()
                        comment.clear()
                    }
                }
            }
            Text { visible: command.text !== "" && page.effect !== ""; text: page.effect; textFormat: Text.PlainText; color: look.c.text_soft; font.pixelSize: 12; wrapMode: Text.Wrap; Layout.fillWidth: true }
            Field { placeholderText: "Filter rules"; Layout.preferredWidth: 260; onTextChanged: page.needle = text }
            ListView {
                id: list
                objectName: "ruleList"
                Layout.fillWidth: true
                Layout.fillHeight: true
                clip: true
                model: app.ruleModel
                boundsBehavior: Flickable.StopAtBounds
                activeFocusOnTab: true
                keyNavigationEnabled: true
                Keys.onReturnPressed: if (currentItem) currentItem.edit()
                Keys.onDeletePressed: if (currentItem) app.removeRule(currentItem.key)
                ScrollBar.vertical: ScrollBar { }
                delegate: RuleLine {
                    width: ListView.view.width - 12
                    marked: ListView.isCurrentItem && list.activeFocus
                    shown: page.needle === "" || command.includes(page.needle) || comment.includes(page.needle)
                }
            }
        }

        ColumnLayout {
            visible: page.part === "limits"
            Layout.fillWidth: true
            spacing: 8
            SettingLine { id: firstLimit; label: "Folders that commands may run in"; value: app.policy.roots || ""; hint: "any folder"; onApplied: text => app.setList("roots", text) }
            SettingLine { label: "Variables that a caller may set"; value: app.policy.variables || ""; hint: "none"; onApplied: text => app.setList("variables", text) }
            SettingLine { label: "A request waits for you"; value: app.policy.wait > 0 ? app.policy.wait : ""; hint: "as set"; unit: "s at most"; fieldWidth: 90; onApplied: text => app.setSeconds("wait", text) }
            SettingLine { label: "A headless command lives"; value: app.policy.lifetime > 0 ? app.policy.lifetime : ""; hint: "as set"; unit: "s at most"; fieldWidth: 90; onApplied: text => app.setSeconds("lifetime", text) }
            Text { text: "What counts as destructive"; color: look.c.text; font.pixelSize: 15; font.bold: true; Layout.topMargin: 12 }
            Text { text: "A class that is on is blocked headless and wants to be held here. What cannot be recovered is always refused."; color: look.c.text_soft; font.pixelSize: 12; wrapMode: Text.Wrap; Layout.fillWidth: true }
            Flow {
                Layout.fillWidth: true
                spacing: 4
                Repeater {
                    model: app.policy.kinds || []
                    Tick {
                        required property var modelData
                        objectName: "kind-" + modelData.name
                        width: 140
                        text: modelData.name
                        on: modelData.on
                        onAsked: on => app.setBlocked(modelData.name, on)
                    }
                }
            }
            SettingLine { label: "Also destructive"; value: app.policy.also || ""; hint: "deploy prod, terraform apply"; onApplied: text => app.setList("also", text) }
        }
        Item { visible: page.part === "limits"; Layout.fillHeight: true }

        ColumnLayout {
            visible: page.part === "window"
            Layout.fillWidth: true
            spacing: 4
            RowLayout {
                spacing: 8
                Layout.leftMargin: 6
                Layout.bottomMargin: 8
                Text { text: "Looks"; color: look.c.text }
                Choice { model: ["system", "dark", "light"]; currentIndex: Math.max(0, model.indexOf(app.prefers.theme)); onActivated: app.prefer("theme", currentText); implicitWidth: 110 }
            }
            Tick { id: notify; objectName: "notify"; text: "Notify me when something is asked and I am not looking"; on: !!app.prefers.notify; onAsked: on => app.prefer("notify", on) }
            Tick { objectName: "comeForward"; text: "Raise this window then"; on: !!app.prefers.come_forward; onAsked: on => app.prefer("come_forward", on) }
            Tick { objectName: "keepInTray"; text: "Closing the window keeps it in the tray, where there is one"; on: !!app.prefers.keep_in_tray; onAsked: on => app.prefer("keep_in_tray", on) }
        }
        Item { visible: page.part === "window"; Layout.fillHeight: true }
    }
    function derive(rule) {
        page.part = "rules"
        command.text = rule
        command.forceActiveFocus()
    }
    Connections {
        target: app
        function onPageChanged() { page.enter() }
        function onPreviewed(pattern, text) { if (pattern === command.text) page.effect = text }
    }
}
